// SPDX-License-Identifier: Apache-2.0
// Holds all volumes and snapshots, away from the thread that draws: loads them page by page, filters
// and sorts them, hands out the rows that are in sight, and finds the lineage of one.
import { errorOf, fetchSoon, headersFor } from './api.js';

const PAGE = 1000;
const MOST_CHILDREN = 40; // of one volume or snapshot in a lineage
const MOST_RELATIVES = 400;
const DEEPEST = 100;
const LEAST_PAUSE_MS = 1000; // between two loads
const RETRY_MS = 3000; // after an answer that is an error

const SEARCHED = {
    volumes: ['name', 'id', 'node', 'state', 'type', 'sourceName'],
    snapshots: ['name', 'id', 'node', 'type', 'volumeName'],
};

class Table {
    constructor(kind) {
        this.kind = kind;
        this.columns = {};
        this.rows = []; // as the server sends them: arrays
        this.order = new Uint32Array(0); // of the rows that fit the search, sorted
        this.query = { search: '', sort: 'name', descending: false };
        this.version = 0;
        this.state = { loading: true, loaded: 0, error: '', degraded: [], loadedMs: 0 };
        this.texts = null;
        this.again = false;
        this.running = false;
    }

    tell() {
        postMessage({
            event: 'state',
            kind: this.kind,
            version: this.version,
            count: this.order.length,
            total: this.rows.length,
            ...this.state,
        });
    }

    // A call while it loads makes it load once more afterwards.
    async load(isAnew) {
        this.again = true;
        if (isAnew) this.controller?.abort();
        if (this.running) return;
        this.running = true;
        while (this.again) {
            this.again = false;
            this.controller = new AbortController();
            const { signal } = this.controller;
            const started = Date.now();
            const error = await this.loadOnce(signal).catch((reason) => reason);
            if (signal.aborted) continue;
            if (error) this.fail(error);
            // A long list that changes all the time must not keep the server busy.
            const pause = error ? RETRY_MS : Math.max(LEAST_PAUSE_MS, 4 * (Date.now() - started));
            await new Promise((resolve) => setTimeout(resolve, pause));
        }
        this.running = false;
    }

    // The page asks for it again.
    fail(error) {
        this.state = { ...this.state, loading: false, error: error.message };
        this.tell();
    }

    async loadOnce(signal) {
        const rows = [];
        const isFirst = this.version === 0;
        const started = Date.now();
        let shown = 0;
        let after = '';
        this.state = { ...this.state, loading: true, loaded: 0 };
        do {
            const page = await fetchPage(this.kind, after, signal);
            this.columns = Object.fromEntries(page.columns.map((name, at) => [name, at]));
            for (const row of page.rows) rows.push(row);
            after = page.next;
            this.state = {
                loading: Boolean(after),
                loaded: rows.length,
                error: '',
                degraded: page.degraded ?? [],
                loadedMs: after ? this.state.loadedMs : started,
            };
            // The first time, what is there is shown early, and then each time that it is four times as much.
            if (!after || (isFirst && rows.length >= 4 * shown)) {
                shown = rows.length;
                this.replace(rows.slice());
            } else if (isFirst && rows.length % (10 * PAGE) === 0) this.tell();
        } while (after);
    }

    replace(rows) {
        this.rows = rows;
        this.texts = null;
        this.arrange();
    }

    arrange() {
        const { search, sort, descending } = this.query;
        const words = search.toLowerCase().split(/\s+/).filter(Boolean);
        const found = [];
        for (let at = 0; at < this.rows.length; at += 1) if (this.fits(at, words)) found.push(at);
        const keys = this.sortKeys(sort);
        const sign = descending ? -1 : 1;
        found.sort((a, b) => (keys[a] < keys[b] ? -sign : keys[a] > keys[b] ? sign : a - b));
        this.order = Uint32Array.from(found);
        this.version += 1;
        this.tell();
    }

    fits(at, words) {
        if (words.length === 0) return true;
        this.texts ??= [];
        const text = (this.texts[at] ??= SEARCHED[this.kind]
            .map((name) => this.rows[at][this.columns[name]] ?? '')
            .join('\n')
            .toLowerCase());
        return words.every((word) => text.includes(word));
    }

    // Numbers in names count as numbers: a-9 comes before a-10. A volume of size 0 has no limit.
    sortKeys(name) {
        const column = this.columns[name];
        const zero = this.kind === 'volumes' && name === 'sizeBytes' ? Infinity : 0;
        const isText = this.rows.some((row) => typeof row[column] === 'string');
        return this.rows.map((row) =>
            isText
                ? String(row[column] ?? '')
                      .toLowerCase()
                      .replace(/\d+/g, (digits) => digits.padStart(12, '0'))
                : Number(row[column] === 0 ? zero : (row[column] ?? -1)),
        );
    }

    row(at) {
        const row = {};
        for (const name in this.columns) row[name] = this.rows[at][this.columns[name]];
        return row;
    }

    slice(start, end) {
        return Array.from(this.order.subarray(start, end), (at) => this.row(at));
    }
}

const tables = { volumes: new Table('volumes'), snapshots: new Table('snapshots') };
let secret = '';
let family = { stamp: '', byId: new Map(), children: new Map() };

async function fetchPage(kind, after, signal) {
    const path = `/api/v1/${kind}?limit=${PAGE}${after ? `&after=${encodeURIComponent(after)}` : ''}`;
    const response = await fetchSoon(path, {
        cache: 'no-store',
        headers: headersFor(secret),
        signal,
    });
    if (!response.ok) throw await errorOf(response);
    return response.json();
}

// ---- lineage ----

function relatives() {
    const stamp = `${tables.volumes.version} ${tables.snapshots.version}`;
    if (family.stamp === stamp) return family;
    family = { stamp, byId: new Map(), children: new Map() };
    addMembers(tables.volumes, 'volume', 'sourceId', 'sourceName');
    addMembers(tables.snapshots, 'snapshot', 'volumeId', 'volumeName');
    return family;
}

function addMembers(table, kind, parentColumn, parentNameColumn) {
    const { id, [parentColumn]: parent, [parentNameColumn]: parentName } = table.columns;
    table.rows.forEach((row, at) => {
        family.byId.set(row[id], {
            table,
            at,
            kind,
            parent: row[parent] || '',
            parentName: row[parentName] || '',
        });
        if (!row[parent]) return;
        const siblings = family.children.get(row[parent]);
        if (siblings) siblings.push(row[id]);
        else family.children.set(row[parent], [row[id]]);
    });
}

function describe(id, depth) {
    const member = family.byId.get(id);
    if (!member) return { id, depth, kind: 'gone', name: '', node: '' };
    const { name, node, state, ready, createdMs } = member.table.row(member.at);
    return {
        id,
        depth,
        kind: member.kind,
        name,
        node,
        state: state ?? (ready === false ? 'not ready' : 'ready'),
        createdMs,
    };
}

// From the oldest ancestor on, in the order in which it is drawn; `parent` is the place of the parent in the list.
function lineage(id) {
    const { byId, children } = relatives();
    const path = [id];
    let name = '';
    while (
        path.length < DEEPEST &&
        byId.get(path.at(-1))?.parent &&
        !path.includes(byId.get(path.at(-1)).parent)
    ) {
        name = byId.get(path.at(-1)).parentName;
        path.push(byId.get(path.at(-1)).parent);
    }
    const onPath = new Set(path);
    const list = [];
    const visit = (member, depth, parent) => {
        const at = list.push({ ...describe(member, depth), parent }) - 1;
        if (list[at].kind === 'gone') list[at].name = name;
        const all = children.get(member) ?? [];
        const some =
            all.length > MOST_CHILDREN
                ? all.filter((child, place) => place < MOST_CHILDREN - 1 || onPath.has(child))
                : all;
        for (const child of some)
            if (depth < DEEPEST && (list.length < MOST_RELATIVES || onPath.has(child)))
                visit(child, depth + 1, at);
        if (some.length < all.length)
            list.push({
                id: '',
                depth: depth + 1,
                kind: 'more',
                name: `and ${all.length - some.length} more`,
                node: '',
                parent: at,
            });
    };
    visit(path.at(-1), 0, -1);
    return list;
}

// ---- what the page asks for ----

const methods = {
    load({ kinds, isAnew, token }) {
        secret = token;
        for (const kind of kinds) tables[kind].load(isAnew);
    },
    query({ kind, query }) {
        tables[kind].query = query;
        if (tables[kind].version > 0) tables[kind].arrange();
    },
    rows: ({ kind, start, end }) => ({
        version: tables[kind].version,
        rows: tables[kind].slice(start, end),
    }),
    indexOf({ kind, id }) {
        const { rows, order, columns } = tables[kind];
        return order.findIndex((at) => rows[at][columns.id] === id);
    },
    find({ kind, id }) {
        const member = relatives().byId.get(id);
        return member ? tables[kind].row(member.at) : null;
    },
    lineage: ({ id }) => lineage(id),
};

onmessage = ({ data }) => postMessage({ answer: data.number, result: methods[data.method](data) });
