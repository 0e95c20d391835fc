/** What the answer to one batch of `POST /v1/events/batch` means for each of its events. */
import { type Reply, membersOf, parsed, retryAfter } from "../client/transport.js";
import { Unreachable } from "../errors.js";

const LONGEST_PAUSE = 300; // seconds; a longer Retry-After is asked again after these

/** What became of a batch. stored: each event has its own result, and `again` holds the places of those to send once
 * more, in a batch of their own. waits: send it again with the same key; `isUnknown` says that it may have been
 * stored. conflict: its key belongs to another content, and neither sending nor dropping is safe. */
export type Verdict =
  | { readonly outcome: "stored"; readonly sent: number; readonly rejected: ReadonlyMap<number, Rejection>; readonly again: readonly number[] }
  | { readonly outcome: "waits"; readonly reason: string; readonly isUnknown: boolean; readonly pauseSeconds?: number | undefined }
  | { readonly outcome: "conflict"; readonly reason: string };

export interface Rejection {
  readonly status: number;
  readonly error: string;
}

/** Read the answer to a batch of `count` events. */
export function interpret(reply: Reply | Unreachable, count: number): Verdict {
  if (reply instanceof Unreachable) return { outcome: "waits", reason: reply.message, isUnknown: true };
  const { status } = reply;
  const { data, error } = membersOf(parsed(reply.body));
  if (status === 200) {
    const isWhole = Array.isArray(data) && data.length === count;
    return isWhole ? each(data) : { outcome: "waits", reason: "the answer does not fit the batch", isUnknown: true };
  }
  const asked = retryAfter(reply.headers);
  const pauseSeconds = asked === undefined ? undefined : Math.min(asked, LONGEST_PAUSE);
  // Only the service's own errors say what became of a batch; a proxy's say nothing.
  if (typeof error === "string") {
    if (status === 409 && asked === undefined) return { outcome: "conflict", reason: error };
    if ([400, 413, 415, 422].includes(status)) {
      const rejected = new Map(Array.from({ length: count }, (_, place) => [place, { status, error }]));
      return { outcome: "stored", sent: 0, rejected, again: [] };
    }
  }
  // An error may come behind portions of the batch that are stored; its key has the service go on.
  const isUnknown = typeof error !== "string" || status >= 500 || status === 409;
  return { outcome: "waits", reason: `HTTP ${status}: ${String(error ?? "")}`, isUnknown, pauseSeconds };
}

function each(results: readonly unknown[]): Verdict {
  const rejected = new Map<number, Rejection>();
  const again: number[] = [];
  let sent = 0;
  for (const [place, result] of results.entries()) {
    const { status, error } = membersOf(result);
    if (status === 201) {
      sent += 1;
    } else if (typeof status === "number" && status >= 400 && status < 500 && status !== 409 && status !== 429) {
      rejected.set(place, { status, error: typeof error === "string" ? error : "" });
    } else {
      again.push(place);
    }
  }
  return { outcome: "stored", sent, rejected, again };
}
