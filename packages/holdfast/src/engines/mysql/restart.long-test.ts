import { killHandOvers } from "../../sql/kill-hand-overs.fixture.js";
import { scenes } from "./ground.fixture.js";

const KILLS = 100;

scenes({ durable: true }, (play) => {
  play(`no token comes twice across ${KILLS} kills while locks are handed over`, async (ground) => {
    const { server } = ground;
    const killed = { locks: () => ground.locks(), restart: () => server.restart() };
    const leases = await killHandOvers(killed, KILLS);
    console.log(`${leases} leases across ${KILLS} kills, every token greater than the one before`);
  });
});
