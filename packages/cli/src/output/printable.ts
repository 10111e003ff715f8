// Controls, separators of lines and paragraphs, and marks that turn the direction of text.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Text of others, such as the label of a holder, as it may be shown on a terminal: whoever can take a
 * lock could otherwise move the cursor there, or make up lines of ours.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    character === "\n" ? "\\n" : escapeOf(character),
  );
}

/** As the library spells it in its messages, and as JSON does. */
function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** One line of JSON. A terminal obeys some characters that JSON does not escape. */
export function jsonLine(value: unknown): string {
  const text = JSON.stringify(value).replace(UNPRINTABLE, escapeOf);
  return `${text}\n`;
}
