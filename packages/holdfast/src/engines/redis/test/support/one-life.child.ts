// Acquires and releases one lock: one-life <url>. Prints the outcome of the release.
import { connect } from "../../../../connect.js";

await using locks = await connect(process.argv[2] ?? "");
const lease = await locks.acquire("a");
console.log(await lease.release());
