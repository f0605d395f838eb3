// What the API's answers are to the views: the one place that knows their field names. Times become milliseconds, durations too.
import { heardBy } from "./realtime/index.js";

const time = (text) => (text ? Date.parse(text) : null);
const ms = (seconds) => (seconds == null ? null : seconds * 1000);

function indicators(i) {
  return {
    pending: i.pending ?? 0,
    held: i.held ?? 0,
    processing: i.processing ?? 0,
    deadLetters: i.failed ?? 0,
    oldest: ms(i.oldest_pending_age_seconds),
    attempts: i.attempts ?? 0,
    dispatched: i.dispatched ?? 0,
    p50: ms(i.duration_p50_seconds),
    p99: ms(i.duration_p99_seconds),
    success: i.success_rate ?? null,
    successHour: i.success_rate_1h ?? null,
  };
}

export function backlog(answer) {
  const lanes = (answer.handlers ?? []).map((lane) => ({
    handler: lane.handler, hold: lane.hold ?? "", runbook: lane.runbook ?? "", slots: lane.slots ?? 0, busy: lane.busy ?? 0, ...indicators(lane),
    width: lane.width ?? lane.slots ?? 0, rate: lane.rate ?? 0, heldBytes: lane.held_bytes ?? null, heldEstimated: lane.held_bytes_estimated ?? false,
    breaker: { state: lane.breaker?.state ?? "closed", since: time(lane.breaker?.since), next: time(lane.breaker?.next_probe) },
  }));
  return { at: time(answer.at) ?? Date.now(), read: Date.now(), freshness: answer.freshness, total: indicators(answer.total ?? {}), lanes };
}

export const alerts = (answer) => ({
  receiver: answer.receiver ?? null,
  alerts: (answer.alerts ?? []).map((a) => ({ ...a, handler: a.handler ?? "", raised: time(a.raised_at), runbooks: a.runbooks ?? [] })),
});

const delivery = (d) => ({
  ...d,
  id: String(d.id),
  next: time(d.next_attempt_at),
  completed: time(d.completed_at),
  lease: time(d.lease_expires_at),
  attempts: (d.attempts ?? []).map((a) => ({ ...a, started: time(a.started_at), took: ms(a.duration_seconds) })),
});

export const message = (m) => ({
  ...m,
  occurred: time(m.occurred_at),
  deliver: time(m.deliver_at),
  deliveries: Array.isArray(m.deliveries) ? m.deliveries.map(delivery) : [],
});

export const messages = (page) => ({ messages: (page.messages ?? []).map(message), next: page.next ?? "" });

export const destination = (d) => ({ ...d, types: d.types ?? [], hold: d.hold ?? "", created: time(d.created_at) });

export const destinations = (page) => (page.destinations ?? []).map(destination);

export const document = (d) => ({ collection: d.collection, id: d.id, version: d.version ?? 0, changed: time(d.changed_at), freshness: d.freshness });

export const documents = (page) => ({ documents: (page.documents ?? []).map(document), next: page.next ?? "" });

const loan = (l) => ({ ...l, borrowed: time(l.borrowed_at), due: time(l.due_at), returned: time(l.returned_at) });

const reservation = (r) => ({ ...r, copy: r.copy ?? "", placed: time(r.placed_at), until: time(r.pickup_until) });

export const desk = (d) => ({ onLoan: d.on_loan ?? 0, overdue: d.overdue ?? 0, latest: (d.latest ?? []).map(loan), reservations: (d.reservations ?? []).map(reservation) });

export const connections = (answer) => ({
  ...answer,
  connections: answer.connections.map((c) => ({ ...c, hears: heardBy(c), since: time(c.since), lag: ms(c.lag_seconds) })),
});

export const backfill = (b) => ({ ...b, from: time(b.from), to: time(b.to), started: time(b.started_at), finished: time(b.finished_at), progress: b.progress ?? 0, added: b.added ?? 0 });

export const audit = (page) => ({ entries: (page.entries ?? []).map((e) => ({ ...e, at: time(e.at) })), next: page.next ?? "", freshness: page.freshness });
