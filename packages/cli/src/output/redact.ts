const MASK = "***";

/**
 * A message without the password of the URL, wherever in it the password turns up. The library
 * keeps them out of its own messages; this is for what clients of backends put into theirs.
 */
export function redact(message: string, url: string): string {
  // A URL whose "://" is misspelt has a password all the same.
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
