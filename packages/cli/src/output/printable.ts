// Controls, separators of lines and paragraphs, and marks that turn the direction of text.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Makes foreign text, such as the label of a holder, safe for a terminal. Otherwise any user of the
 * lock could move the cursor of this terminal, or write lines that look like ours.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) =>
    character === "\n" ? "\\n" : escapeOf(character),
  );
}

/** The same spelling as in the library's messages and in JSON. */
function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** One line of JSON. Some characters that a terminal acts on are not escaped by JSON itself. */
export function jsonLine(value: unknown): string {
  const text = JSON.stringify(value).replace(UNPRINTABLE, escapeOf);
  return `${text}\n`;
}
