import { testKillsOfHandOvers } from "../../../../test-support/sql/kill-hand-overs.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ durable: true }, testKillsOfHandOvers);
