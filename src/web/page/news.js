// SPDX-License-Identifier: Apache-2.0
// Tells in the corner what has happened. What the server still works on is shown until it has ended; a
// failure stays until it is dismissed.
import { h, make } from './dom.js';
import { call } from './api.js';

const SHOWN_MS = 6000;
const MOST = 5;

const works = new Map(); // id of the operation -> { item, begun, done, failed }

function show(name, isKept, ...content) {
    const item = make('p', { class: name }, content);
    item.isKept = isKept;
    const box = document.getElementById('news');
    box.append(item);
    if (box.childElementCount > MOST) [...box.children].find((one) => !one.isKept)?.remove();
    return item;
}

export function tell(text, name = '') {
    if (name === 'tone-bad') return tellFailure(text);
    const item = show(name, false, text);
    setTimeout(() => item.remove(), SHOWN_MS);
}

function tellFailure(text) {
    const item = show(
        'tone-bad',
        false,
        h(
            'button',
            { type: 'button', class: 'icon', 'aria-label': 'Dismiss', onclick: () => item.remove() },
            '✕',
        ),
        h('span', null, text),
    );
}

// Says `begun` until the operation has ended, then `done` or `failed` with the reason.
export function tellWork(operation, { begun, done, failed }) {
    works.set(operation, { item: show('tone-wait', true, begun), begun, done, failed });
}

export function isToldOf(operation) {
    return works.has(operation.id);
}

// The operations, as the server tells them.
export function tellEnds(operations) {
    for (const { id, state, error } of operations) {
        const work = works.get(id);
        if (!work || state === 'running') continue;
        const { done, failed } = forget(id);
        if (state === 'succeeded') tell(done, 'tone-good');
        else if (state === 'cancelled') tell(`${failed}: it was cancelled.`);
        else tell(`${failed}: ${error || state}`, 'tone-bad');
    }
}

function forget(id) {
    const work = works.get(id);
    works.delete(id);
    work.item.remove();
    return work;
}

// The events only have what ended in the last minute: what ended while they did not come is looked for.
export async function lookForEnds(shown) {
    const missing = [...works.keys()].filter((id) => !shown.some((one) => one.id === id));
    if (missing.length === 0) return;
    const { operations } = await call('operations');
    tellEnds(operations);
    for (const id of missing)
        if (works.has(id) && !operations.some((one) => one.id === id))
            tell(`${forget(id).begun} The server does not know how it ended.`, 'tone-bad');
}
