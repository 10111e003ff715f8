// Tries to acquire once, without waiting: rival <url> <resource>. Prints "granted <token>", "busy"
// or "refused <message>", and ends.
import { connect } from "../../../../connect.js";
import { EngineError } from "../../../../errors.js";

const [url = "", resource = ""] = process.argv.slice(2);
try {
  const locks = await connect(url);
  const lease = await locks.tryAcquire(resource);
  console.log(lease === null ? "busy" : `granted ${lease.token}`);
  await locks.close();
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  console.log(`refused ${error.message}`);
}
