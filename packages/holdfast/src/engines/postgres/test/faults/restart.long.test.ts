import { playKillsOfHandOvers } from "../../../../test-support/sql/kill-hand-overs.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ durable: true }, playKillsOfHandOvers);
