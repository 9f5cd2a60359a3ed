import { Continuous, Kind, Statistic, Suite } from './wire.js';
export const version = 1;
// Bounds that no honest peer comes near.
const maxDim = 2 ** 20;
const maxBundle = 2 ** 16;
const maxReason = 64; // bytes
const maxPhases = 64;
const maxPublic = 256 * 1024; // bytes
const want = (ok, what) => {
    if (!ok)
        throw new Error(what);
};
const length = (field, b, size) => want(b.length === size, `${field} has ${b.length} bytes: want ${size}`);
const short = (field, s) => want(new TextEncoder().encode(s).length <= maxReason, `${field}: want at most ${maxReason} bytes`);
const positive = (field, v) => want(v > 0 && v < Infinity, `${field} ${v}: want a positive finite number`);
const finite = (field, values) => {
    want(values.length <= maxDim, `${field} of ${values.length} values: want at most ${maxDim}`);
    want(values.every(Number.isFinite), `${field}: not finite`);
};
const member = (field, v, of) => want(Object.values(of).includes(v), `${field} ${v}: unknown`);
/** Checks the name of a task. */
export const name = (s) => want(/^[a-z0-9_-]{1,32}$/.test(s), 'a name of 1 to 32 of a-z, 0-9, _ and -');
const header = (m) => {
    length('task_hash', m.taskHash, 32);
    want(m.round > 0n, 'round 0');
};
function phase(p) {
    want(p.rounds > 0n && p.minimum > 0n && p.minimum <= p.cohort, 'rounds, cohort or minimum');
    want(p.mechanism !== undefined, 'mechanism: missing');
    want(p.smoothing >= 0 && !Object.is(p.smoothing, -0) && p.smoothing < Infinity, 'smoothing');
    member('statistic', p.statistic, Statistic);
    want(p.statistic === Statistic.gradient || p.smoothing === 0, 'smoothing of what is no gradient');
    want(p.rounds <= p.users || p.roundsPerUser > 1, 'more rounds than users');
    want([p.descent, p.acceleration, p.prox].filter((m) => m !== undefined).length <= 1, 'constants of two methods');
}
function plan(p) {
    member('continuous', p.continuous, Continuous);
    want(p.phases.length > 0 && p.phases.length <= maxPhases, `${p.phases.length} phases: want 1 to ${maxPhases}`);
    p.phases.forEach(phase);
    finite('plan.start', p.start);
    length('plan.start_hash', p.startHash, p.start.length > 0 ? 32 : 0);
    want(p.start.length > 0 || p.startPrivacy === undefined, 'plan.start_privacy without plan.start');
    if (p.startPrivacy) {
        short('plan.start_privacy.task', p.startPrivacy.task);
        for (const v of [p.startPrivacy.epsilon, p.startPrivacy.delta])
            want(v >= 0 && v < Infinity, 'plan.start_privacy');
    }
    positive('plan.epsilon', p.epsilon);
    positive('plan.delta', p.delta);
    positive('plan.epsilon_budget', p.epsilonBudget);
}
const checks = {
    [Kind.stage]: (m) => {
        name(m.task);
        length('key', m.key, 32);
    },
    [Kind.task]: (m) => {
        name(m.name);
        if (m.plan === undefined)
            throw new Error('plan: missing');
        plan(m.plan);
        length('learner_key', m.learnerKey, 32);
        length('stage_key', m.stageKey, 32);
        length('life', m.life, 16);
        member('suite', m.suite, Suite);
        want(m.public.length <= maxPublic, `public: ${m.public.length} bytes, want at most ${maxPublic}`);
    },
    [Kind.round]: (m) => {
        header(m);
        want(m.step > 0n, 'step 0');
        finite('point', m.point);
    },
    [Kind.open]: (m) => {
        header(m);
        want(m.attempt > 0n, 'attempt 0');
        length('manifest_hash', m.manifestHash, 32);
        length('instance', m.instance, 16);
        member('suite', m.suite, Suite);
    },
    [Kind.claim]: (m) => {
        header(m);
        want(m.attempt > 0n, 'attempt 0');
        length('manifest_hash', m.manifestHash, 32);
        length('instance', m.instance, 16);
    },
    [Kind.batch]: (m) => {
        header(m);
        length('manifest_hash', m.manifestHash, 32);
        short('reason', m.reason);
        if (m.void)
            want(m.users === 0n && m.noiseTrials === 0n && m.totals.length === 0, 'a void batch carries totals');
        else
            want(m.users > 0n && m.totals.length > 0 && m.attempt > 0n, 'a batch without users, attempt or totals');
        want(m.totals.length <= maxDim, `${m.totals.length} totals: want at most ${maxDim}`);
        m.rejects.forEach((r, i) => {
            short('rejects.reason', r.reason);
            const before = m.rejects[i - 1];
            want(r.count > 0n && (before === undefined || before.reason < r.reason), 'rejects: want ascending reasons');
        });
    },
    [Kind.close]: (m) => {
        header(m);
        want(m.attempt > 0n, 'attempt 0');
        length('manifest_hash', m.manifestHash, 32);
        length('batch_hash', m.batchHash, 32);
    },
    [Kind.end]: (m) => {
        length('task_hash', m.taskHash, 32);
        short('reason', m.reason);
    },
};
/** Throws unless a signed body is well formed by itself. */
export function check(kind, body) {
    if (body.version !== version)
        throw new Error(`wire version ${body.version}: want ${version}`);
    checks[kind](body);
}
/** Throws unless a report is well formed. */
export function checkReport(m) {
    want(m.version === version, `wire version ${m.version}: want ${version}`);
    length('task_hash', m.taskHash, 32);
    want(m.ids.length > 0 && m.ids.length <= maxBundle, `${m.ids.length} ids: want 1 to ${maxBundle}`);
    m.ids.forEach((id) => length('id', id, 16));
}
