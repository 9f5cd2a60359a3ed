// One event's part in a task, as an automaton without clock, network or disk (stream/device/participation of the Go
// device). Every change is durable before it is acted on: after join and sending, before a publish.
import { hex } from './bytes.js';
export const attemptOf = (number, openHash) => ({ number: Number(number), open: hex(openHash) });
const same = (a, b) => a.number === b.number && a.open === b.open;
export const fresh = (key) => ({ key, state: 'fresh', draw: null, sends: [], before: 'fresh', rounds: 0, refunds: 0, reports: 0, sealed: null });
const sendOf = (p, a) => p.sends.find((s) => same(s.attempt, a));
/** Whether the event belongs to an interactive phase and may answer a later round of it. */
export const stays = (p, phase) => p.state !== 'fresh' && p.draw !== null && p.draw.most > 1 && p.draw.phase === phase && p.rounds < p.draw.most;
/** The number of participations of the event if it joins a round of a phase now. */
export const participations = (p, phase) => p.state === 'uncounted' && !stays(p, phase) ? p.refunds + 2 : p.refunds + 1;
/** Whether the event may be charged to a round. */
export function mayJoin(p, d) {
    if (p.state === 'fresh')
        return true;
    const last = p.draw;
    if (p.state === 'charged' || d.round <= last.round || d.step <= last.step || d.phase < last.phase || d.manifest === last.manifest) {
        return false;
    }
    if (stays(p, d.phase) && d.most === last.most)
        return true;
    return p.state === 'uncounted' && !last.final && (d.phase !== last.phase || last.most <= 1);
}
/** Charges the event to a round. Throws where mayJoin forbids it: a second draw of a round would halve its noise. */
export function join(p, d) {
    if (!mayJoin(p, d))
        throw new Error(`an event that is ${p.state} may not join round ${d.round}`);
    const again = stays(p, d.phase) && d.most === p.draw.most;
    if (again)
        [p.before, p.rounds] = [p.state, p.rounds + 1];
    else {
        if (p.state === 'uncounted')
            p.refunds++;
        [p.before, p.rounds] = ['fresh', 1];
    }
    p.state = 'charged';
    p.draw = d;
    p.sends = [];
}
/** Whether the event may be published to an attempt: never back to an older one, and under floors to one alone. */
export function maySend(p, a, floors) {
    if (p.state !== 'charged' || a.number === 0)
        return false;
    const last = p.sends[p.sends.length - 1]?.attempt;
    return last === undefined || same(a, last) || (!floors && a.number >= last.number && sendOf(p, a) === undefined);
}
/** Notes one publish that is about to be made. */
export function sending(p, a, floors) {
    if (!maySend(p, a, floors))
        throw new Error(`an event that is ${p.state} may not be sent to attempt ${a.number}`);
    let s = sendOf(p, a);
    if (s === undefined) {
        s = { attempt: a, sent: 0, acked: 0, refused: 0, lowest: 0 };
        p.sends.push(s);
        p.reports++;
    }
    s.sent++;
}
/** Notes the answer to one publish. */
export function acked(p, a, ack) {
    const s = sendOf(p, a);
    if (s === undefined)
        return;
    if (ack.status === 'refused')
        s.refused = Math.min(s.refused + 1, s.sent - s.acked);
    if ((ack.status !== 'stored' && ack.status !== 'duplicate') || ack.sequence === 0)
        return;
    s.acked = Math.min(s.acked + 1, s.sent - s.refused);
    if (s.lowest === 0 || ack.sequence < s.lowest)
        s.lowest = ack.sequence;
}
/** Whether a publish to an attempt was acknowledged with a sequence. */
export const answered = (p, a) => (sendOf(p, a)?.lowest ?? 0) > 0;
/** Settles a charged event by the Close of its round (rule 7). */
export function decide(p, c) {
    if (p.state === 'charged' && c.round === p.draw.round && c.manifest === p.draw.manifest)
        settle(p, outcomeOf(p, c));
}
/** Settles a charged event that waits for no Close. */
export function abandon(p) {
    if (p.state === 'charged')
        settle(p, 'unknown');
}
function outcomeOf(p, c) {
    if (c.void)
        return 'unknown';
    const s = sendOf(p, c.attempt);
    if (s !== undefined && s.lowest > 0 && s.lowest <= c.cutoff)
        return 'counted';
    if (p.draw.final || p.sends.length === 0)
        return 'unknown';
    const doubt = p.sends.some((s) => s.acked + s.refused !== s.sent || (s.acked > 0 && (!same(s.attempt, c.attempt) || s.lowest <= c.cutoff)));
    return doubt ? 'unknown' : 'uncounted';
}
function settle(p, s) {
    if (p.before === 'counted' || (p.before === 'unknown' && s === 'uncounted'))
        s = p.before;
    p.state = s;
    p.sends = [];
    p.before = 'fresh';
    p.sealed = null;
}
/** The outcome as far as it is known now. */
export function outcome(p) {
    if (p.state === 'fresh')
        return 'uncounted';
    if (p.state !== 'charged')
        return p.state;
    return p.before === 'counted' ? 'counted' : 'unknown';
}
