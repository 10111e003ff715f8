// Takes one lock and gives it back: one-life <url>. Says how that ended.
import { connect } from "../../../../connect.js";

await using locks = await connect(process.argv[2] ?? "");
const lease = await locks.acquire("a");
console.log(await lease.release());
