/** Reports an agent's actions without making it wait: from memory, in batches. */
import { type ClientOptions, Transport, milliseconds } from "../client/transport.js";
import { Unreachable } from "../errors.js";
import { type Verdict, interpret } from "./batches.js";
import { type ActionType, type EventOptions, type Queued, type ReportedEvent, encode } from "./encoding.js";

const MAX_BATCH_EVENTS = 500;
const MAX_BATCH_BYTES = 512 * 1024;
const [FIRST_PAUSE, LONGEST_BACKOFF, SHORTEST_PAUSE] = [0.5, 30, 0.1]; // seconds between tries
const EXIT_SECONDS = 5;
const KEY_SECONDS = 23 * 3600; // the service remembers a key for 24 hours

/** An event that will not be sent, and why; `status` is that of the service's answer, if it rejected the event. */
export type Lost = Readonly<{ event: ReportedEvent; reason: string; status?: number }>;

/** `onLost` is called for each event that the service does not take or that is dropped; without it a warning is
 * written. `maxQueued` and `maxQueuedBytes` bound what waits in memory, `lingerSeconds` how long a batch waits for
 * more events. */
export interface ReporterOptions extends Omit<ClientOptions, "retries"> {
  readonly onLost?: (lost: Lost) => void;
  readonly maxQueued?: number;
  readonly maxQueuedBytes?: number;
  readonly lingerSeconds?: number;
}

/** Events since the reporter began; `queued` wait now; of `unsettled` nobody can tell whether they are stored. */
export type Statistics = Readonly<Record<"reported" | "queued" | "sent" | "rejected" | "dropped" | "unsettled", number>>;

/** What is sent under one key; `unknownSince` says that it may have been stored. */
type Batch = { readonly key: string; readonly events: readonly Queued[]; unknownSince?: number };

/** Reports what one agent does. `report()` never waits and never throws. Events wait in memory alone: until `flush()`
 * or `close()` says true, a crash loses them. Node's own end, with nothing left to do, is put off by five seconds at
 * most. Nothing is sent twice as two events, and the order is kept. Throws: ConfigurationError. */
export class Reporter {
  readonly #transport: Transport;
  readonly #agentId: string;
  readonly #options: Required<Pick<ReporterOptions, "onLost" | "maxQueued" | "maxQueuedBytes" | "lingerSeconds">>;
  readonly #counts = { reported: 0, sent: 0, rejected: 0, dropped: 0, unsettled: 0 };
  readonly #stopping = new AbortController();
  readonly #queue: Queued[] = [];
  #queuedBytes = 0;
  #batch: Batch | undefined;
  #sending: Promise<void> | undefined;
  #wake = (): void => undefined;
  #hurry = 0;
  #isClosing = false;

  constructor(agentId: string, options: ReporterOptions = {}) {
    const onLost = ({ reason }: Lost): void => console.warn(`agentid: event lost: ${reason}`);
    this.#transport = new Transport(options);
    this.#agentId = agentId;
    this.#options = { onLost, maxQueued: 10_000, maxQueuedBytes: 16 * 1024 * 1024, lingerSeconds: 0.05, ...options };
    closeAtEnd(this);
  }

  /** Take an event; false if it is lost: the service would refuse it, memory is full, or closed. */
  report(actionType: ActionType, details: Readonly<Record<string, unknown>> = {}, options: EventOptions = {}): boolean {
    const { occurredAt = new Date(), sessionId: session_id, chainId: chain_id, decisionId: decision_id } = options;
    const event = { agent_id: this.#agentId, action_type: actionType, details, occurred_at: "", session_id, chain_id, decision_id };
    let reason = this.#isClosing ? "the reporter is closed" : "memory is full";
    try {
      event.occurred_at = occurredAt.toJSON();
      const queued = encode(event);
      const { maxQueued, maxQueuedBytes } = this.#options;
      const isFull = this.statistics().queued >= maxQueued || this.#queuedBytes + queued.size > maxQueuedBytes;
      if (!this.#isClosing && !isFull) {
        this.#queue.push(queued);
        this.#queuedBytes += queued.size;
        this.#counts.reported += 1;
        this.#sending ??= this.#send();
        return true;
      }
    } catch (error) {
      reason = error instanceof Error ? error.message : String(error);
    }
    this.#lose("dropped", { event, reason });
    return false;
  }

  statistics(): Statistics {
    return { ...this.#counts, queued: this.#queue.length + (this.#batch?.events.length ?? 0) };
  }

  /** Wait until everything reported so far is sent or lost; false if it is not within these seconds. */
  async flush(timeoutSeconds = EXIT_SECONDS): Promise<boolean> {
    this.#hurry += 1;
    this.#wake();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds(timeoutSeconds))));
    await Promise.race([this.#sending, late]);
    clearTimeout(timer);
    this.#hurry -= 1;
    return this.statistics().queued === 0;
  }

  /** Flush and stop; what could not be sent in time is lost, and `onLost` is told. False if something was. */
  async close(timeoutSeconds = EXIT_SECONDS): Promise<boolean> {
    this.#isClosing = true;
    const isDone = await this.flush(timeoutSeconds);
    this.#stopping.abort();
    living.delete(this);
    this.#wake();
    await this.#sending;
    if (this.#batch !== undefined) this.#giveUp(this.#batch, "closed before an answer came");
    this.#queue.splice(0).forEach(({ event }) => this.#lose("dropped", { event, reason: "closed before it was sent" }));
    return isDone;
  }

  // The one task that sends; it ends when nothing waits, and report() starts it again.

  async #send(): Promise<void> {
    let failures = 0;
    while (this.statistics().queued > 0 && !this.#stopping.signal.aborted) {
      if (this.#batch === undefined) await this.#rest(this.#hurry ? 0 : this.#options.lingerSeconds);
      this.#batch ??= this.#taken();
      const verdict = await this.#try(this.#batch);
      failures = verdict.outcome === "waits" ? failures + 1 : 0;
      const mustWait = verdict.outcome === "waits" || this.#batch !== undefined;
      if (mustWait) await this.#backOff(failures, verdict.outcome === "waits" ? verdict.pauseSeconds : undefined);
    }
    this.#sending = undefined;
  }

  /** A batch of what waits, in its order. */
  #taken(): Batch {
    let total = 0;
    const isBeyond = ({ size }: Queued, place: number): boolean => {
      total += size;
      return place > 0 && (place >= MAX_BATCH_EVENTS || total > MAX_BATCH_BYTES);
    };
    const end = this.#queue.findIndex(isBeyond);
    return { key: crypto.randomUUID(), events: this.#queue.splice(0, end < 0 ? this.#queue.length : end) };
  }

  /** Send a batch once and settle it as the answer says. */
  async #try(batch: Batch): Promise<Verdict> {
    const isTooOld = batch.unknownSince !== undefined && Date.now() - batch.unknownSince > KEY_SECONDS * 1000;
    if (isTooOld) return this.#giveUp(batch, "it may have been stored, too long ago");
    const sentAt = Date.now();
    const content = batch.events.map(({ line }) => line).join("");
    const headers = { "Content-Type": "application/x-ndjson" };
    const { signal } = this.#stopping;
    const reply = await this.#transport
      .tryOnce({ method: "POST", path: "/v1/events/batch", key: batch.key, content, headers, signal })
      .catch((cause: unknown) => new Unreachable("closed", { cause }));
    const verdict = interpret(reply, batch.events.length);
    if (verdict.outcome === "conflict") return this.#giveUp(batch, verdict.reason, sentAt);
    if (verdict.outcome === "waits") {
      if (verdict.isUnknown) batch.unknownSince ??= sentAt;
      return verdict;
    }
    this.#settle(batch, verdict.again.flatMap((place) => batch.events[place] ?? []));
    this.#counts.sent += verdict.sent;
    for (const [place, { status, error: reason }] of verdict.rejected) {
      const rejected = batch.events[place];
      if (rejected !== undefined) this.#lose("rejected", { event: rejected.event, reason, status });
    }
    return verdict;
  }

  #giveUp(batch: Batch, reason: string, since = batch.unknownSince): Verdict {
    this.#settle(batch, []);
    batch.events.forEach(({ event }) => this.#lose(since === undefined ? "dropped" : "unsettled", { event, reason }));
    return { outcome: "conflict", reason };
  }

  #settle(batch: Batch, again: readonly Queued[]): void {
    this.#batch = again.length > 0 ? { key: crypto.randomUUID(), events: again } : undefined;
    const total = (events: readonly Queued[]): number => events.reduce((sum, { size }) => sum + size, 0);
    this.#queuedBytes -= total(batch.events) - total(again);
  }

  #lose(kind: "rejected" | "dropped" | "unsettled", lost: Lost): void {
    this.#counts[kind] += 1;
    try {
      this.#options.onLost(lost);
    } catch (error) {
      console.error("agentid: onLost failed:", error);
    }
  }

  /** Wait as the service asks, or longer after each failure; less while someone waits in `flush()`. */
  async #backOff(failures: number, asked: number | undefined): Promise<void> {
    const began = performance.now();
    const own = Math.min(LONGEST_BACKOFF, FIRST_PAUSE * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
    for (let left = 1; left > 0 && !this.#stopping.signal.aborted; ) {
      const usual = this.#hurry ? Math.min(own, FIRST_PAUSE) : own;
      const wait = asked === undefined ? usual : Math.max(asked, SHORTEST_PAUSE);
      left = wait - (performance.now() - began) / 1000;
      if (left > 0) await this.#rest(left);
    }
  }

  /** Wait; a call of `#wake` ends it. The wait alone does not keep Node running. */
  async #rest(seconds: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer: unknown = setTimeout(resolve, seconds * 1000);
      (timer as { unref?: () => void }).unref?.();
      this.#wake = resolve;
    });
  }
}

const living = new Set<Reporter>();
let isWatching = false;

/** Close the reporter when Node has nothing left to do. */
function closeAtEnd(reporter: Reporter): void {
  const { process } = globalThis as { process?: { on?: (event: string, act: () => void) => void } };
  if (!isWatching) process?.on?.("beforeExit", () => living.forEach((each) => void each.close()));
  isWatching = true;
  living.add(reporter);
}
