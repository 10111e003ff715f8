const MASK = "***";

/**
 * Removes the URL's secrets from a message, wherever they are in it. The library keeps secrets out
 * of its own messages, but the clients of backends may put them into theirs.
 */
export function redact(message: string, url: string): string {
  // A URL with a misspelt "://" may still contain a password.
  const authority = /^(?!sqlite:)(?:[^:/@]+:?\/+)?(.*)@/s.exec(url)?.[1] ?? "";
  const parameters = /[?&](?:password|secret|token)=([^&#]+)/gi;
  const secrets = [
    authority.includes(":") ? authority.slice(authority.indexOf(":") + 1) : "",
    /:\/\/|^sqlite:/.test(url) ? "" : authority,
    ...[...url.matchAll(parameters)].map(([, value = ""]) => value),
  ];
  const spellings = secrets.flatMap((secret) => [secret, decoded(secret)]);
  return spellings
    .filter((secret) => secret !== "")
    .reduce((text, secret) => text.replaceAll(secret, MASK), message);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
