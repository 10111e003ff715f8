import { playKillsOfHandOvers } from "../../test-support/sql/kill-hand-overs.fixture.js";
import { scenes } from "./ground.fixture.js";

scenes({ durable: true }, playKillsOfHandOvers);
