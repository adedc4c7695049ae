// SPDX-License-Identifier: Apache-2.0
// Small parts that several views draw.
import { h } from './dom.js';
import { NONE, amount, bytes, count, duration, timeText } from './format.js';

const GOOD = ['ready', 'succeeded', 'exported'];
const BAD = ['lost', 'failed', 'unhealthy', 'unreachable', 'down', 'bad file'];

export function tone(state) {
    const word = words(state ?? '');
    if (GOOD.includes(word)) return 'tone-good';
    if (BAD.includes(word)) return 'tone-bad';
    return word === '' || word === 'cancelled' ? 'tone-none' : 'tone-wait';
}

export function badge(state, trouble) {
    return h(
        'span',
        { class: `badge ${tone(state)}`, title: trouble || null },
        state ? words(state) : 'unknown',
    );
}

// "move-volume" and "MOVE_VOLUME" become "move volume".
export function words(name) {
    return name.replaceAll(/[-_]/g, ' ').toLowerCase();
}

export function sentence(name) {
    const text = words(name);
    return text.charAt(0).toUpperCase() + text.slice(1);
}

export function icon(path) {
    return h(
        'svg',
        { viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', class: 'icon' },
        h('path', { d: path }),
    );
}

// How much of something is used, as a bar with its text.
export function usage(used, size, label) {
    if (typeof used !== 'number') return NONE;
    if (!(size > 0)) return bytes(used);
    const percent = Math.min(100, Math.max(0, (100 * used) / size));
    const level = percent >= 90 ? 'bad' : percent >= 75 ? 'wait' : 'good';
    return h(
        'div',
        { class: 'usage' },
        h(
            'div',
            {
                class: `meter ${level}`,
                role: 'meter',
                'aria-label': label,
                'aria-valuemin': 0,
                'aria-valuemax': 100,
                'aria-valuenow': Math.round(percent),
                'aria-valuetext': `${bytes(used)} of ${bytes(size)}`,
            },
            h('div', { style: { width: `${percent.toFixed(1)}%` } }),
        ),
        h('span', { class: 'usage-text' }, `${bytes(used)} of ${bytes(size)}`),
    );
}

export function operationTitle(operation) {
    return `${sentence(operation.kind)} ${operation.subjectName || operation.subject}`;
}

// In a word more. The server's description of a copy has the id of the source, not its name.
export function operationText({ kind, sourceName, description }) {
    return kind.startsWith('copy-') && sourceName ? `from ${sourceName}` : description;
}

// The bar and its figures. What is not live has neither a rate nor a time that is left.
export function progress(operation, isLive) {
    const isKnown = operation.total > 0;
    if (!isKnown && operation.state !== 'running')
        return operation.done > 0 ? amount(operation.done, operation.units) : NONE;
    const percent = isKnown ? Math.floor((100 * operation.done) / operation.total) : null;
    return h(
        'div',
        { class: 'progress' },
        h('progress', {
            max: isKnown ? operation.total : 1,
            value: isKnown ? operation.done : isLive ? null : 0,
            'aria-label': operationTitle(operation),
        }),
        h(
            'span',
            { class: 'progress-text' },
            isKnown
                ? `${percent} % · ${amount(operation.done, operation.units)} of ${amount(operation.total, operation.units)}`
                : operation.done > 0
                  ? amount(operation.done, operation.units)
                  : 'begun',
        ),
    );
}

export function rate(operation, isLive) {
    const isKnown =
        isLive && operation.state === 'running' && typeof operation.ratePerSecond === 'number';
    return isKnown ? `${amount(Math.round(operation.ratePerSecond), operation.units)}/s` : NONE;
}

export function timeLeft(operation, isLive) {
    if (!isLive || operation.state !== 'running') return NONE;
    return operation.stalled
        ? h('span', { class: 'tone-wait' }, 'stalled')
        : duration(operation.secondsLeft);
}

// A table with a heading for each column: [{ label, isNumber, width, cell(row) }]. With widths, tables of the same columns
// are aligned, whatever is in them; a column without one takes what is left.
export function table(label, columns, rows, keyOf, empty) {
    if (rows.length === 0) return h('p', { class: 'empty' }, empty);
    const hasWidths = columns.some(({ width }) => width);
    return h(
        'div',
        { class: 'table', role: 'region', 'aria-label': label, tabindex: 0 },
        h(
            'table',
            hasWidths ? { class: 'fixed' } : null,
            hasWidths &&
                h(
                    'colgroup',
                    null,
                    columns.map(({ width }) =>
                        h('col', { style: { width: width ? `${width}px` : 'auto' } }),
                    ),
                ),
            h(
                'thead',
                null,
                h(
                    'tr',
                    null,
                    columns.map((column) =>
                        h(
                            'th',
                            { scope: 'col', class: column.isNumber ? 'number' : null },
                            column.label,
                        ),
                    ),
                ),
            ),
            h(
                'tbody',
                null,
                rows.map((row) =>
                    h(
                        'tr',
                        { key: keyOf(row) },
                        columns.map((column) =>
                            h(
                                'td',
                                { class: column.isNumber ? 'number' : column.class },
                                column.cell(row),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    );
}

export function fact(label, ...value) {
    return [h('dt', null, label), h('dd', null, value)];
}

export function plural(number, one, many) {
    return `${count(number)} ${number === 1 ? one : many}`;
}

// Of what could not be loaded again.
export function oldText(sinceMs, reason) {
    return `This is from ${timeText(sinceMs)}, and may have changed: ${reason}`;
}
