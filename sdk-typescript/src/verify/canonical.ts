/** Canonical JSON (RFC 8785), and hashes over it. */
import { NotValid } from "../errors.js";

/** The canonical form of a JSON value. Throws: NotValid (malformed) for what has none. */
export function canonical(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(form(value));
}

function form(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(form).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    // §3.2.3: names are sorted by their UTF-16 code units.
    const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${members.map(([name, each]) => `${form(name)}:${form(each)}`).join(",")}}`;
  }
  const isHalfPair = typeof value === "string" && /\p{Surrogate}/u.test(value);
  const isNumber = typeof value === "number" && Number.isFinite(value);
  if (!isHalfPair && (isNumber || typeof value === "string" || typeof value === "boolean" || value === null)) {
    return JSON.stringify(value);
  }
  throw new NotValid("malformed", `${typeof value} is not representable as canonical JSON`);
}

export async function sha256(...parts: readonly Uint8Array<ArrayBuffer>[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await new Blob([...parts]).arrayBuffer()));
}

export function hexadecimal(octets: Uint8Array): string {
  return Array.from(octets, (each) => each.toString(16).padStart(2, "0")).join("");
}
