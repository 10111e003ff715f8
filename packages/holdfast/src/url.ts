import { orMeant } from "./core/input/did-you-mean.js";
import { show, UsageError } from "./errors.js";

export interface Host {
  readonly host: string;
  readonly port: number | null;
}

/** An engine's address, parsed. `new URL` refuses lists of hosts, so this file parses it. */
export interface EngineUrl {
  readonly scheme: string;
  readonly username: string | null;
  readonly password: string | null;
  readonly hosts: readonly Host[];
  /**
   * What follows the hosts, percent-decoded; for sqlite: and memory: everything after the scheme.
   */
  readonly path: string;
  readonly params: ReadonlyMap<string, string>;
}

const SHAPE = /^([a-z][a-z0-9+.-]*):(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?$/is;

/** hint: appended to the error for a text that is no URL at all. */
export function parseEngineUrl(text: string, hint = ""): EngineUrl {
  const parts = SHAPE.exec(text);
  if (!parts) {
    throw new UsageError(
      `an engine's URL looks like "sqlite:locks.db" or "redis://127.0.0.1:6379", got ${JSON.stringify(redact(text))}${hint}`,
    );
  }
  const [, scheme = "", authority = "", path = "", query = ""] = parts;
  const at = authority.lastIndexOf("@");
  const [user, ...secret] = at < 0 ? [] : authority.slice(0, at).split(":");
  return {
    scheme: scheme.toLowerCase(),
    username: user ? decode(user, text) : null,
    password: secret.length > 0 ? decode(secret.join(":"), text) : null,
    hosts: parseHosts(authority.slice(at + 1), text),
    path: decode(path, text),
    params: parseParams(query, text),
  };
}

/**
 * The URL without its password, for messages. A password with an unencoded "@", "/", "?" or "#" is
 * the classic mistake and ends up in a message, so everything up to the last "@" counts as secret.
 */
export function redact(text: string): string {
  return (
    text
      .replace(/^([^:]*:\/\/[^:/?#]*):.*@/s, "$1:***@")
      // Without "://" the start of the password is unknown. A path contains none.
      .replace(/^(?![^:]*:\/\/|sqlite:)(\w*:?\/+)?.*@/s, "$1***@")
      .replace(/([?&](?:password|secret|token)=)[^&#]*/gi, "$1***")
  );
}

/** An unknown parameter is a mistake: a misspelt one would silently change nothing. */
export function refuseUnknownParams(url: EngineUrl, known: readonly string[]): void {
  for (const name of url.params.keys()) {
    if (known.includes(name)) continue;
    const knows = known.length === 0 ? "none" : known.join(", ");
    const isTls = /^ssl[-_]?(mode)?$/i.test(name) && known.includes("tls");
    const hint = isTls ? "; for TLS write tls=true" : orMeant(name, known);
    throw new UsageError(`${url.scheme}: has no parameter "${name}"; it knows ${knows}${hint}`);
  }
}

/**
 * A parameter that is a number; undefined if it is missing. Any other value is shown as it was
 * typed.
 */
export function numberParam(url: EngineUrl, name: string): number | undefined {
  const text = url.params.get(name);
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  const example = name.endsWith("Ms") ? 60_000 : 2;
  throw new UsageError(
    `${name} is ${show(text)}; it must be a whole number, like ${name}=${example}`,
  );
}

function parseHosts(list: string, text: string): Host[] {
  if (list === "") return [];
  return list.split(",").map((entry) => {
    const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::(\d+))?$/i.exec(entry);
    const port = match?.[2] === undefined ? null : Number(match[2]);
    const isPort = port === null || (port >= 1 && port <= 65_535);
    if (!match?.[1] || !isPort) {
      const wants = isPort
        ? 'a host looks like "127.0.0.1:6379" or "[::1]:6379"'
        : "a port is a number from 1 to 65535";
      // What looks like a host may be part of a password, so only the redacted URL is shown.
      throw new UsageError(
        `${wants}, got ${JSON.stringify(redact(text))}; ` +
          'in a password, write "@", "/", "?", "#" and ":" percent-encoded',
      );
    }
    return { host: match[1].replace(/^\[|\]$/g, ""), port };
  });
}

function parseParams(query: string, text: string): Map<string, string> {
  const params = new Map<string, string>();
  for (const pair of query.split("&").filter(Boolean)) {
    const [name = "", ...value] = pair.split("=");
    const key = decode(name, text);
    if (params.has(key)) throw new UsageError(`parameter "${key}" is given twice`);
    params.set(key, decode(value.join("="), text));
  }
  return params;
}

function decode(part: string, text: string): string {
  try {
    return decodeURIComponent(part);
  } catch (cause) {
    throw new UsageError(
      `${JSON.stringify(redact(text))} has a "%" that does not start a percent-encoded byte; write it as "%25"`,
      { cause },
    );
  }
}
