// The declaration of a task: the canonical JSON that a signed Task carries (docs/reference/tasks.md). Types name what is
// read; keys that this device does not know are refused, for it cannot know what they change.
import { text } from './bytes.js';
/** Refused is thrown for a task or a round that the device takes no part in. It names the field and what would do. */
export class Refused extends Error {
    field;
    value;
    wanted;
    name = 'Refused';
    constructor(field, value, wanted) {
        super(`${field} is ${show(value)}: want ${wanted}`);
        this.field = field;
        this.value = value;
        this.wanted = wanted;
    }
}
function show(value) {
    const s = typeof value === 'string' ? JSON.stringify(value) : String(value);
    return s.length > 80 ? `${s.slice(0, 80)}...` : s;
}
// The keys of each mapping. A name of another mapping stands for a list of it or for it alone.
const keys = {
    '': ['version', 'name', 'events', 'features', 'intercept', 'norm_bound', 'label', 'model', 'privacy', 'user', 'silo',
        'schedule', 'validation'],
    events: ['format', 'columns', 'header', 'separator', 'key', 'skip_lines', 'max_line'],
    features: ['vector', 'columns', 'crosses', 'polynomial', 'fourier', 'public', 'scales', 'precondition'],
    'features.vector': ['dimension', 'kind', 'min', 'max', 'scale', 'max_nonzeros', 'hidden'],
    'features.columns.*': ['column', 'kind', 'columns', 'field', 'part', 'over', 'min', 'max', 'scale', 'mean', 'std', 'clip',
        'unit', 'vocabulary', 'unknown', 'buckets', 'words', 'edges', 'knots', 'marks', 'missing', 'hidden'],
    'features.columns.*.missing': ['tokens', 'fill', 'indicator', 'word'],
    'features.crosses.*': ['columns', 'number', 'buckets'],
    'features.polynomial': ['columns', 'degree'],
    'features.fourier': ['columns', 'dimension', 'gamma', 'seed'],
    'features.precondition': ['second_moments', 'damping'],
    model: ['loss', 'level', 'width', 'score_bound', 'class_weights', 'label_noise', 'set', 'radius', 'min', 'max', 'ridge',
        'clip_norm', 'start', 'smoothness'],
    validation: ['off', 'weight', 'loss_bound'],
    label: ['column', 'positive', 'negative', 'classes', 'min', 'max', 'scale', 'unit', 'offset', 'marks'],
};
function known(value, path) {
    if (Array.isArray(value)) {
        for (const v of value)
            known(v, `${path}.*`);
        return;
    }
    if (typeof value !== 'object' || value === null)
        return;
    const list = keys[path];
    for (const [key, v] of Object.entries(value)) {
        if (list !== undefined && !list.includes(key)) {
            throw new Refused(`declaration: ${path === '' ? key : `${path}.${key}`}`, v, 'nothing that this device does not know');
        }
        known(v, path === '' ? key : `${path}.${key}`);
    }
}
/** Reads a canonical declaration: exactly the bytes that the encoder writes, in which every key is known. */
export function parseDeclaration(data) {
    const json = text(data);
    let parsed;
    try {
        parsed = JSON.parse(json);
    }
    catch {
        throw new Refused('declaration', `${data.length} bytes`, 'JSON');
    }
    // The encoder's numbers are those of JavaScript; of text it escapes two characters more.
    const canonical = JSON.stringify(parsed).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
    if (typeof parsed !== 'object' || parsed === null || canonical !== json) {
        throw new Refused('declaration', `${data.length} bytes`, 'the canonical form');
    }
    known(parsed, '');
    const d = parsed;
    if (d.version !== 1)
        throw new Refused('declaration: version', d.version, '1');
    return d;
}
