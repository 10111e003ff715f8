import { testKillsOfHandOvers } from "../../../../test-support/sql/kill-hand-overs.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({ durable: true }, testKillsOfHandOvers);
