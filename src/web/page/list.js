// SPDX-License-Identifier: Apache-2.0
// A list of any length: only the rows in sight exist. A worker loads, filters and sorts.
import { h, make } from './dom.js';
import { token } from './api.js';

const ROW = 32; // px, as style.css says
const BLOCK = 128; // rows that are asked for at once
const SPARE = 8; // rows beyond either edge
const MOST_BLOCKS = 40; // that are kept

// ---- the worker ----

const worker = new Worker('worker.js', { type: 'module' });
const waiting = new Map();
const lists = new Map();
let number = 0;

export function ask(method, data) {
    number += 1;
    worker.postMessage({ method, number, ...data });
    return new Promise((resolve) => waiting.set(number, resolve));
}

// isAnew: what is under way may wait for an answer that never comes, and is given up.
export function reload(kinds, isAnew) {
    return ask('load', { kinds, isAnew, token: token.get() });
}

worker.onmessage = ({ data }) => {
    if (data.event) lists.get(data.kind)?.onState(data);
    else {
        waiting.get(data.answer)(data.result);
        waiting.delete(data.answer);
    }
};

// ---- the list ----

export class List {
    // columns: [{ key, label, text(row), tone?(row), title?(row), isNumber? }]; onInfo(state) when the state changes.
    constructor({ kind, label, columns, onOpen, onInfo }) {
        Object.assign(this, { kind, columns, onOpen, onInfo });
        this.state = {
            version: 0,
            count: 0,
            total: 0,
            loading: true,
            loaded: 0,
            error: '',
            degraded: [],
            loadedMs: 0, // when it was right for the last time
        };
        this.query = { search: '', sort: 'name', descending: false };
        this.version = 0; // of the rows that are shown
        this.blocks = new Map(); // number -> rows, or null while they are asked for
        this.pool = [];
        this.active = 0;
        this.selected = '';
        this.build(label);
        lists.set(kind, this);
    }

    build(label) {
        this.head = make(
            'div',
            { role: 'row', class: 'row head', 'aria-rowindex': 1 },
            this.columns.map((column) => this.headCell(column)),
        );
        this.note = make(
            'div',
            { role: 'row', class: 'row note', 'aria-rowindex': 2 },
            h('div', { role: 'gridcell' }, 'Loading …'),
        );
        this.body = make('div', { role: 'rowgroup', class: 'rows' });
        this.body.append(this.note);
        const headGroup = make('div', { role: 'rowgroup', class: 'head-group' });
        headGroup.append(this.head);
        this.element = make('div', {
            role: 'grid',
            class: `grid ${this.kind}`,
            'aria-label': label,
            'aria-readonly': 'true',
            tabindex: '-1',
        });
        this.element.append(headGroup, this.body);
        this.element.onscroll = () => this.schedule();
        this.element.onkeydown = (event) => this.onKey(event);
        new ResizeObserver(() => this.schedule()).observe(this.element);
        this.showSort();
    }

    headCell({ key, label, isNumber }) {
        return h(
            'div',
            { role: 'columnheader', class: isNumber ? 'number' : null },
            h('button', { type: 'button', onclick: () => this.sortBy(key) }, label),
        );
    }

    // ---- search and sort ----

    search(text) {
        this.query = { ...this.query, search: text };
        this.element.scrollTop = 0;
        this.active = 0;
        ask('query', { kind: this.kind, query: this.query });
    }

    sortBy(key) {
        const isSame = this.query.sort === key;
        this.query = {
            ...this.query,
            sort: key,
            descending: isSame ? !this.query.descending : key === 'createdMs',
        };
        this.showSort();
        ask('query', { kind: this.kind, query: this.query });
    }

    showSort() {
        this.columns.forEach(({ key }, at) => {
            const sort =
                key !== this.query.sort
                    ? 'none'
                    : this.query.descending
                      ? 'descending'
                      : 'ascending';
            this.head.children[at].setAttribute('aria-sort', sort);
        });
    }

    // ---- rows ----

    // The rows of before stay until those of the new state are there, so that nothing flickers.
    async onState(state) {
        const isNew = state.version !== this.state.version;
        this.state = state;
        this.onInfo(state);
        if (!isNew) {
            if (state.version === 0) this.showCount(); // it may say why there is nothing yet
            return;
        }
        const first = Math.floor(this.firstInSight() / BLOCK);
        const { version, rows } = await ask('rows', {
            kind: this.kind,
            start: first * BLOCK,
            end: (first + 2) * BLOCK,
        });
        if (version !== this.state.version) return;
        this.version = version;
        this.blocks = new Map([
            [first, rows.slice(0, BLOCK)],
            [first + 1, rows.slice(BLOCK)],
        ]);
        this.active = Math.min(this.active, Math.max(0, state.count - 1));
        this.showCount();
        this.paint(true);
        this.reveal();
    }

    showCount() {
        const { count, total, loading, error } = this.state;
        this.element.setAttribute('aria-rowcount', count + 1);
        this.body.style.height = `${Math.max(1, count) * ROW}px`;
        this.note.hidden = count > 0;
        this.note.firstChild.textContent =
            error ||
            (loading
                ? 'Loading …'
                : total > 0
                  ? 'Nothing fits the search.'
                  : `There are no ${this.kind} yet.`);
    }

    firstInSight() {
        return Math.max(0, Math.floor(this.element.scrollTop / ROW) - SPARE);
    }

    schedule() {
        this.frame ??= requestAnimationFrame(() => {
            this.frame = null;
            this.paint(false);
        });
    }

    paint(isAll) {
        const first = this.firstInSight();
        const inSight = Math.ceil(this.element.clientHeight / ROW) + 2 * SPARE;
        this.grow(inSight);
        const hadFocus = this.body.contains(document.activeElement);
        for (let index = first; index < first + this.pool.length; index += 1)
            this.paintRow(this.pool[index % this.pool.length], index, isAll);
        // A row that scrolled away must not take the focus along to another one.
        if (hadFocus && !this.rowOf(this.active)) this.element.focus({ preventScroll: true });
    }

    grow(wanted) {
        if (this.element.clientHeight === 0 || this.pool.length >= wanted) return;
        while (this.pool.length < wanted) {
            const row = make(
                'div',
                { role: 'row', class: 'row', tabindex: '-1' },
                this.columns.map(({ isNumber }) =>
                    h('div', { role: 'gridcell', class: isNumber ? 'number' : null }, h('span')),
                ),
            );
            row.onclick = () => this.open(row.index);
            row.hidden = true;
            this.pool.push(row);
            this.body.append(row);
        }
        for (const row of this.pool) row.index = -1;
    }

    at(index) {
        const block = Math.floor(index / BLOCK);
        const rows = this.blocks.get(block);
        if (rows === undefined) this.fetchBlock(block);
        return rows?.[index % BLOCK];
    }

    async fetchBlock(block) {
        const { blocks } = this;
        blocks.set(block, null);
        const { version, rows } = await ask('rows', {
            kind: this.kind,
            start: block * BLOCK,
            end: (block + 1) * BLOCK,
        });
        if (blocks !== this.blocks) return;
        if (version === this.version) blocks.set(block, rows);
        else blocks.delete(block);
        for (const old of blocks.keys())
            if (blocks.size > MOST_BLOCKS && old !== block) blocks.delete(old);
        this.paint(true);
    }

    paintRow(row, index, isAll) {
        const isThere = index < this.state.count;
        if (!isThere) {
            row.hidden = true;
            row.index = -1;
            return;
        }
        const item = this.at(index);
        if (!isAll && row.index === index && row.item === item) return;
        if (row.index !== index) {
            if (row === document.activeElement) this.element.focus({ preventScroll: true });
            row.index = index;
            row.style.transform = `translateY(${index * ROW}px)`;
            row.setAttribute('aria-rowindex', index + 2);
        }
        row.hidden = false;
        row.item = item;
        row.tabIndex = index === this.active ? 0 : -1;
        row.classList.toggle('waiting', !item);
        row.setAttribute('aria-selected', String(Boolean(item) && item.id === this.selected));
        this.columns.forEach((column, at) =>
            this.paintCell(row.children[at].firstChild, column, item),
        );
    }

    paintCell(cell, { text, tone, title }, item) {
        const shown = item ? text(item) : '';
        if (cell.textContent !== shown) cell.textContent = shown;
        cell.title = item ? (title ? title(item) : shown) : '';
        cell.className = item && tone ? tone(item) : '';
    }

    // ---- focus ----

    rowOf(index) {
        const row = this.pool[index % this.pool.length];
        return row?.index === index ? row : null;
    }

    onKey(event) {
        if (this.head.contains(event.target)) return;
        const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 2);
        const steps = {
            ArrowDown: 1,
            ArrowUp: -1,
            PageDown: page,
            PageUp: -page,
            Home: -Infinity,
            End: Infinity,
        };
        if (event.key in steps) this.focus(this.active + steps[event.key]);
        else if (event.key === 'Enter' || event.key === ' ') this.open(this.active);
        else return;
        event.preventDefault();
    }

    focus(index) {
        if (this.state.count === 0) return;
        const before = this.rowOf(this.active);
        if (before) before.tabIndex = -1;
        this.active = Math.min(Math.max(index, 0), this.state.count - 1);
        this.scrollTo(this.active);
        this.paint(false);
        const row = this.rowOf(this.active);
        row.tabIndex = 0;
        row.focus({ preventScroll: true });
    }

    // The head covers the first row of the element.
    scrollTo(index) {
        const top = index * ROW;
        const space = this.element.clientHeight - 2 * ROW;
        if (top < this.element.scrollTop) this.element.scrollTop = top;
        else if (top > this.element.scrollTop + space) this.element.scrollTop = top - space;
    }

    open(index) {
        const item = this.at(index);
        if (!item) return;
        const before = this.rowOf(this.active);
        if (before) before.tabIndex = -1;
        this.active = index;
        this.onOpen(item);
    }

    select(id) {
        if (this.selected === id) return;
        this.selected = id;
        this.toReveal = id;
        this.paint(true);
        this.reveal();
    }

    // Scrolls to what was selected elsewhere; if it is not in the list yet, then when it is.
    async reveal() {
        const id = this.toReveal;
        if (!id) return;
        const index = await ask('indexOf', { kind: this.kind, id });
        if (index < 0 || id !== this.toReveal || this.element.clientHeight === 0) return;
        this.toReveal = '';
        this.active = index;
        this.scrollTo(index);
        this.paint(true);
    }

    // Gives the focus back to the row that was opened, or to the list if there are none.
    focusActive() {
        if (this.state.count > 0) this.focus(this.active);
        else this.element.focus({ preventScroll: true });
    }
}
