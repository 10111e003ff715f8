import { HoldfastError } from "../../../errors.js";

const MOST_CAUSES = 4;
// A server that does not know a command quotes its arguments; those of HELLO have the password.
const QUOTED = /, with args beginning with:[^\n]*/g;

/**
 * A client's error as it may be shown. Clients put the whole command into it, and so grantIds and
 * passwords; only what the error says by itself is kept.
 */
export function clientError(error: unknown, depth = 0): Error {
  if (error instanceof HoldfastError) return error;
  if (!(error instanceof Error)) return new Error(withoutArguments(String(error)));
  const { name, message, stack, code, cause, lastNodeError } = error as ClientError;
  const because = depth < MOST_CAUSES ? (cause ?? lastNodeError) : undefined;
  const copy = new Error(
    withoutArguments(message),
    because === undefined ? {} : { cause: clientError(because, depth + 1) },
  );
  // As on every error: inspect shows the stack, which begins with the name.
  Object.defineProperty(copy, "name", { value: name, configurable: true, writable: true });
  copy.stack = withoutArguments(stack ?? `${name}: ${message}`);
  return typeof code === "string" ? Object.assign(copy, { code }) : copy;
}

type ClientError = Error & {
  /** Node's own, for a connection that could not be made. */
  readonly code?: unknown;
  /** Of an ioredis Cluster: what the node that it asked last said. */
  readonly lastNodeError?: unknown;
};

function withoutArguments(text: string): string {
  return text.replace(QUOTED, "");
}
