/** Webhooks: that the service sent these octets, and lately. */
import { membersOf, parsed } from "../client/transport.js";
import { ConfigurationError, NotValid } from "../errors.js";

const HMAC = { name: "HMAC", hash: "SHA-256" };
type Fields = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export type WebhookRules = Readonly<{ secret: string; now?: Date; toleranceSeconds?: number }>;

/** What happened: `event` is its kind; `id` is the same in every retry. */
export type VerifiedWebhook = Readonly<{
  id: string; event: string; createdAt: Date; data: Readonly<Record<string, unknown>>;
}>;

/** Check a delivery by its raw body and read it. Throws: NotValid; ConfigurationError for what is no secret. Its
 * `webhook-signature` is over body, id and time (Standard Webhooks 1.0), so that a delivery recorded earlier is refused. */
export async function verifyWebhook(body: Uint8Array | string, headers: Fields, rules: WebhookRules): Promise<VerifiedWebhook> {
  const { secret, now = new Date(), toleranceSeconds = 300 } = rules;
  const pairs = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const found = new Map(pairs.map(([name, value]) => [name.toLowerCase(), String(value ?? "")]));
  const field = (name: string): string => found.get(name) ?? "";
  const octets = new Uint8Array(typeof body === "string" ? new TextEncoder().encode(body) : body);
  const [id, sentAt] = [field("webhook-id"), field("webhook-timestamp")];
  const signed = await new Blob([`${id}.${sentAt}.`, octets]).arrayBuffer();
  const key = base64(secret.replace("whsec_", ""));
  if (key === undefined || key.length === 0) throw new ConfigurationError("secret: not a webhook's secret");
  const imported = await crypto.subtle.importKey("raw", key, HMAC, false, ["verify"]);
  const given = field("webhook-signature").split(" ").filter((each) => each.startsWith("v1,"));
  const macs = given.flatMap((each) => base64(each.slice(3)) ?? []);
  // Web Crypto compares in constant time.
  const checks = await Promise.all(macs.map((mac) => crypto.subtle.verify(HMAC, imported, mac, signed)));
  if (!checks.includes(true)) throw new NotValid("invalid_signature", "webhook-signature");
  if (!/^[0-9]{1,12}$/.test(sentAt)) throw new NotValid("malformed", "webhook-timestamp");
  const age = Math.abs(now.getTime() / 1000 - Number(sentAt));
  if (age > toleranceSeconds) throw new NotValid("expired", "the delivery is too old, or a clock is wrong");
  return read(octets, id);
}

function read(octets: Uint8Array, id: string): VerifiedWebhook {
  const { event, data, created_at: at, id: own } = membersOf(parsed(octets));
  const createdAt = new Date(String(at));
  if (own !== id || typeof event !== "string" || typeof data !== "object" || Number.isNaN(createdAt.getTime())) {
    throw new NotValid("malformed", "not this event");
  }
  return { id, event, createdAt, data: { ...data } };
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
  } catch {
    return undefined;
  }
}
