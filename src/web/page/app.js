// SPDX-License-Identifier: Apache-2.0
// The page: its state, where it is, what it shows, and what changes it.
import { h, make, render } from './dom.js';
import { call, follow, token } from './api.js';
import { count, timeText } from './format.js';
import { icon, operationTitle, plural, tone } from './parts.js';
import { List, reload } from './list.js';
import { listColumns, listInfo } from './columns.js';
import { Detail } from './detail.js';
import { askToken, askVolume } from './dialogs.js';
import { isToldOf, lookForEnds, tell, tellEnds, tellWork } from './news.js';
import { views } from './views.js';

const POLL_MS = 5000; // for what the server does not announce
const LIST_MS = 60000; // the same for the lists: what others change in the storage behind a connection
const SEARCH_DELAY_MS = 120;
const MOST_TROUBLES = 3; // that are told above each view
const EXPORTS_SHOWN = 200; // at first, and each time that more are asked for

const KINDS = ['volumes', 'snapshots']; // of lists

const $ = (id) => document.getElementById(id);

const state = {
    view: 'nodes',
    id: '',
    isLive: false,
    isLost: false,
    lost: { since: 0, reason: '' },
    lastNews: 0, // when the server said something for the last time
    canChange: false,
    overview: null,
    nodes: null,
    connections: null,
    repositories: null,
    latencies: null,
    operations: [],
    exports: {}, // of the repositories whose lists are open: { all: newest first, or null, shown: how many }
    errors: {},
    loadedMs: {}, // when each of the above was right for the last time
};

const places = [
    {
        name: 'nodes',
        label: 'Nodes',
        needs: ['overview', 'nodes'],
        path: 'M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01',
    },
    {
        name: 'volumes',
        label: 'Volumes',
        needs: ['nodes'],
        list: true,
        path: 'M3 4c0-2.6 10-2.6 10 0v8c0 2.6-10 2.6-10 0zM3 4c0 2.6 10 2.6 10 0M3 8c0 2.6 10 2.6 10 0',
    },
    {
        name: 'snapshots',
        label: 'Snapshots',
        needs: ['nodes'],
        list: true,
        path: 'M2 5h3l1-2h4l1 2h3v8H2zM8 6.5a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 0 1 0-4.8',
    },
    {
        name: 'operations',
        label: 'Operations',
        needs: [],
        path: 'M13.5 8a5.5 5.5 0 1 1-2-4.3M13.5 2v3h-3M8 5v3l2 1.5',
    },
    {
        name: 'connections',
        label: 'Connections',
        needs: ['connections'],
        path: 'M6.5 9.5l3-3M5 7L3.5 8.5a2.8 2.8 0 0 0 4 4L9 11M7 5l1.5-1.5a2.8 2.8 0 0 1 4 4L11 9',
    },
    {
        name: 'exports',
        label: 'Exports',
        needs: ['repositories'],
        path: 'M8 10V2M5 5l3-3 3 3M2.5 9.5v4h11v-4',
    },
    {
        name: 'latencies',
        label: 'Latencies',
        needs: ['latencies'],
        path: 'M2 13.5h12M4 11V8M7 11V4M10 11V6.5M13 11V9',
    },
];

const placeOf = (name) => places.find((place) => place.name === name);

// ---- data ----

const asked = {}; // how often each was asked for
const answered = {}; // the last of these that was answered

// An answer that another one has overtaken is old.
async function load(name) {
    asked[name] = (asked[name] ?? 0) + 1;
    const number = asked[name];
    const isOld = () => number < (answered[name] ?? 0);
    try {
        const answer = await call(name);
        if (isOld()) return;
        state[name] = answer;
        state.loadedMs[name] = Date.now();
        delete state.errors[name];
    } catch (error) {
        if (isOld()) return;
        state.errors[name] = error.message;
    }
    answered[name] = number;
}

async function refresh(...names) {
    await Promise.all(names.map(load));
    if (names.includes('repositories')) refreshExports();
    state.canChange = Boolean(state.isLive && state.overview?.writable);
    draw();
}

function refreshAll() {
    refresh('overview', ...placeOf(state.view).needs.filter((name) => name !== 'overview'));
    if (listsLoaded) loadLists(KINDS, true);
    detail.refresh();
    for (const name of Object.keys(state.exports)) loadExports(name);
}

// What the server does not announce, and what could not be loaded.
function poll() {
    if (!state.isLive || document.hidden) return;
    refresh('overview', ...placeOf(state.view).needs.filter((name) => name !== 'overview'));
    const old = KINDS.filter((kind) => {
        const { error, loadedMs } = lists[kind].state;
        return error || Date.now() - loadedMs > LIST_MS;
    });
    if (listsLoaded && old.length > 0) loadLists(old);
    detail.refresh();
    lookForEnds(state.operations).catch(() => {}); // it is tried again
}

let listsLoaded = false;

// While nobody looks nothing is loaded: everything is, when the stream begins again.
function loadLists(kinds, isAnew = false) {
    listsLoaded = true;
    if (!document.hidden) reload(kinds, isAnew);
}

function onChanged(what) {
    const needs = placeOf(state.view).needs;
    refresh('overview', ...what.filter((name) => needs.includes(name) || name === 'nodes'));
    // With a node or a connection, its volumes come and go.
    const isOfNodes = what.includes('nodes') || what.includes('connections');
    const kinds = KINDS.filter((kind) => isOfNodes || what.includes(kind));
    if (listsLoaded && kinds.length > 0) loadLists(kinds);
    detail.refresh();
    if (what.includes('repositories'))
        for (const name of Object.keys(state.exports)) loadExports(name);
}

function onOperations(list) {
    const before = new Map(state.operations.map((operation) => [operation.id, operation.state]));
    for (const operation of list)
        if (before.get(operation.id) === 'running' && operation.state !== 'running')
            onEnd(operation);
    tellEnds(list);
    state.operations = list.sort((a, b) => a.startedMs - b.startedMs);
    draw();
}

function onEnd(operation) {
    const title = operationTitle(operation);
    if (!isToldOf(operation))
        tell(
            operation.state === 'failed'
                ? `${title} failed: ${operation.error}`
                : `${title}: ${operation.state}.`,
            tone(operation.state),
        );
    if (operation.subject === state.id) detail.refresh();
}

function onEvent(name, data) {
    state.lastNews = Date.now();
    if (name === 'operations') onOperations(data.operations);
    else if (name === 'changed') onChanged(data.what);
}

function onLive(live, error, seconds) {
    if (live === 'live') {
        Object.assign(state, { isLive: true, isLost: false, lastNews: Date.now() });
        refreshAll();
    } else if (live === 'paused') {
        state.isLive = false;
        draw();
    } else {
        const since = state.isLost ? state.lost.since : state.lastNews;
        const isRefused = error?.status === 401 || error?.status === 403;
        Object.assign(state, {
            isLive: false,
            isLost: true,
            canChange: false,
            lost: { since, reason: error?.message ?? '', seconds, isRefused },
        });
        draw();
    }
}

// How a list of exports differs from an older one.
function stampOf(name) {
    const found = state.repositories?.repositories.find((one) => one.name === name);
    return `${found?.snapshots} ${found?.lastExportMs}`;
}

function refreshExports() {
    for (const [name, open] of Object.entries(state.exports))
        if (open.error || open.stamp !== stampOf(name)) loadExports(name);
}

// A call while it loads makes it load once more afterwards.
async function loadExports(name) {
    const open = state.exports[name];
    open.stamp = stampOf(name);
    open.again = true;
    if (open.isLoading) return;
    open.isLoading = true;
    while (open.again) {
        open.again = false;
        try {
            open.all = await readExports(name);
            Object.assign(open, { error: '', loadedMs: Date.now() });
        } catch (error) {
            open.error = error.message;
        }
        draw();
    }
    open.isLoading = false;
}

async function readExports(name) {
    const list = [];
    let after = '';
    do {
        const page = await call(
            `exports?repository=${encodeURIComponent(name)}&after=${encodeURIComponent(after)}`,
        );
        list.push(...page.exports);
        after = page.next;
    } while (after);
    return list.reverse();
}

// ---- actions ----

const actions = {
    async cancel(operation) {
        try {
            await call('operations/cancel', { id: operation.id });
            tell(`${operationTitle(operation)} is being cancelled.`);
        } catch (error) {
            tell(error.message, 'tone-bad');
        }
    },
    // What this page has changed itself is looked at again at once.
    changed(text) {
        tell(text, 'tone-good');
        onChanged(KINDS);
    },
    // The server answers what has begun before it has ended, with its operation.
    told({ operation }, texts) {
        if (operation) tellWork(operation, texts);
        else tell(texts.done, 'tone-good');
        onChanged(KINDS);
    },
    made(answer) {
        actions.told(answer, {
            begun: `Making ${answer.name} …`,
            done: `Made ${answer.name}.`,
            failed: `${answer.name} was not made`,
        });
        if (answer.id) go(`#/volumes/${encodeURIComponent(answer.id)}`);
    },
    taken(answer) {
        actions.told(answer, {
            begun: `Taking the snapshot ${answer.name} …`,
            done: `Took the snapshot ${answer.name}.`,
            failed: `The snapshot ${answer.name} was not taken`,
        });
    },
    moved(name, node, answer) {
        actions.told(answer, {
            begun: `Moving ${name} to ${node} …`,
            done: `${name} has moved to ${node}.`,
            failed: `${name} has not moved`,
        });
    },
    toggleExports(name, isOpen) {
        delete state.exports[name];
        if (!isOpen) return;
        state.exports[name] = { all: null, shown: EXPORTS_SHOWN, error: '' };
        loadExports(name);
    },
    showMoreExports(name) {
        state.exports[name].shown += EXPORTS_SHOWN;
        draw();
    },
};

function go(hash) {
    location.hash = hash;
}

// ---- lists ----

function makeList(kind) {
    const label = placeOf(kind).label;
    const info = make('p', { class: 'quiet', role: 'status' });
    const search = make('input', {
        type: 'search',
        class: 'search',
        placeholder: 'Search ( / )',
        'aria-label': `Search ${kind}`,
        spellcheck: 'false',
        autocomplete: 'off',
    });
    const button = make(
        'button',
        {
            type: 'button',
            class: 'primary',
            onclick: () => askVolume(null, state.nodes?.nodes ?? [], actions.made),
        },
        'New volume',
    );
    const head = make('div', { class: 'title' }, h('h1', null, label));
    head.append(info, search);
    if (kind === 'volumes') head.append(button);
    let timer = null;
    const list = new List({
        kind,
        label,
        columns: listColumns[kind],
        onOpen: (row) => go(`#/${kind}/${encodeURIComponent(row.id)}`),
        onInfo: (found) => {
            info.textContent = listInfo(found);
            if (state.id) detail.refresh();
            draw();
        },
    });
    search.oninput = () => {
        clearTimeout(timer);
        timer = setTimeout(() => list.search(search.value), SEARCH_DELAY_MS);
    };
    search.onkeydown = (event) => {
        if (event.key === 'ArrowDown' || event.key === 'Enter') list.focus(0);
        else return;
        event.preventDefault();
    };
    $(`list-${kind}`).append(head, list.element);
    return Object.assign(list, { searchBox: search, button });
}

// ---- drawing ----

let frame = null;

function draw() {
    frame ??= requestAnimationFrame(() => {
        frame = null;
        drawAll();
    });
}

function drawAll() {
    drawHeader();
    drawNav();
    drawAlert();
    const place = placeOf(state.view);
    $('view').hidden = Boolean(place.list);
    for (const kind of KINDS) {
        $(`list-${kind}`).hidden = state.view !== kind;
        lists[kind].button.hidden = !state.canChange;
    }
    state.totals = { volumes: navCount('volumes'), snapshots: navCount('snapshots') };
    if (!place.list) render($('view'), views[state.view](state, actions));
    detail.draw();
    document.body.classList.toggle('stale', state.isLost);
}

function drawHeader() {
    const { overview } = state;
    render(
        $('where'),
        overview && [
            h('strong', null, overview.nodeId || overview.driver),
            ` ${overview.driver} ${overview.version}`,
        ],
    );
    const [name, text] = state.isLive
        ? ['tone-good', 'Live']
        : state.isLost
          ? ['tone-bad', 'Connection lost']
          : ['tone-wait', 'Connecting …'];
    render($('live'), h('span', { class: `badge ${name}` }, text));
    render($('token'), tokenLabel());
}

// What the button does, not how it is.
function tokenLabel() {
    if (state.isLost && state.lost.isRefused) return 'Give the token';
    return state.overview?.writable ? 'Lock' : 'Unlock changes';
}

function navCount(name) {
    if (name === 'operations')
        return state.operations.filter((operation) => operation.state === 'running').length || null;
    if (name === 'nodes') return state.nodes?.nodes.length;
    // A list that is still loaded, or could not be, does not know how long it is.
    const { version, loading, error, total } = lists[name]?.state ?? {};
    return version > 0 && !loading && !error ? total : state.overview?.[name];
}

function drawNav() {
    render(
        $('nav'),
        h(
            'ul',
            null,
            places.map(({ name, label, path }) => {
                const number = navCount(name);
                return h(
                    'li',
                    null,
                    h(
                        'a',
                        { href: `#/${name}`, 'aria-current': name === state.view ? 'page' : null },
                        icon(path),
                        h('span', null, label),
                        typeof number === 'number' && h('span', { class: 'count' }, count(number)),
                    ),
                );
            }),
        ),
    );
}

// What is shown although a newer one could not be loaded: from when it is, and why.
function findOld() {
    const { list, needs } = placeOf(state.view);
    const { error, version, loadedMs } = (list && lists[state.view].state) || {};
    if (error && version > 0) return { since: loadedMs, reason: error };
    const name = [...needs, 'overview'].find((one) => state.errors[one] && state[one]);
    return name && { since: state.loadedMs[name], reason: state.errors[name] };
}

function drawAlert() {
    const attention = state.overview?.attention ?? [];
    const old = findOld();
    const { since, reason, isRefused } = state.lost;
    render(
        $('alert'),
        state.isLost &&
            h(
                'p',
                { class: 'alert bad', key: 'lost' },
                h('strong', null, isRefused ? 'The server wants a token. ' : 'Connection lost. '),
                since ? `What you see is from ${timeText(since)}. ` : '',
                `${reason}. It tries again by itself.`,
            ),
        state.isLive &&
            old &&
            h(
                'p',
                { class: 'alert bad', key: 'old' },
                h('strong', null, 'This is not up to date. '),
                old.since ? `It is from ${timeText(old.since)}. ` : '',
                `${old.reason}. It tries again by itself.`,
            ),
        state.isLive &&
            attention.length > 0 &&
            h('div', { class: 'alert wait', key: 'attention' }, troubles(attention)),
    );
}

function troubles(attention) {
    const rest = attention.length - MOST_TROUBLES;
    return [
        h('strong', null, `${plural(attention.length, 'thing needs', 'things need')} attention`),
        h(
            'ul',
            null,
            attention
                .slice(0, MOST_TROUBLES)
                .map(({ what, reason, view }) =>
                    h('li', null, h('a', { href: `#/${view}` }, what), `: ${reason}`),
                ),
            rest > 0 && h('li', null, `and ${count(rest)} more`),
        ),
    ];
}

// ---- where it is ----

function decoded(text) {
    try {
        return decodeURIComponent(text);
    } catch {
        return '';
    }
}

function route() {
    const [, name = '', id = ''] = location.hash.split('/').map(decoded);
    const place = placeOf(name) ?? places[0];
    const before = state.id;
    const viewBefore = state.view;
    Object.assign(state, { view: place.name, id: place.list ? id : '' });
    document.title = `${place.label} · Skycap`;
    if (place.list && !listsLoaded) loadLists(KINDS);
    drawAll();
    if (place.needs.length > 0) refresh(...place.needs);
    detail.open(place.list ? place.name.slice(0, -1) : '', state.id);
    document.body.classList.toggle('with-detail', state.id !== '');
    for (const kind of KINDS)
        lists[kind].select(kind === state.view ? state.id : '');
    if (before && !state.id && viewBefore === state.view) lists[state.view].focusActive();
}

function closeDetail() {
    go(`#/${state.view}`);
}

// ---- theme ----

const themes = {
    '': ['As the system', 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12'],
    light: [
        'Light',
        'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
    ],
    dark: ['Dark', 'M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z'],
};

function showTheme() {
    const [label, path] = themes[document.documentElement.dataset.theme] ?? themes[''];
    render($('theme'), icon(path));
    $('theme').setAttribute('aria-label', `Theme: ${label}`);
    $('theme').title = `Theme: ${label}`;
}

function nextTheme() {
    const names = Object.keys(themes);
    const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
    document.documentElement.dataset.theme = next;
    localStorage.setItem('skycap-theme', next);
    showTheme();
}

// ---- start ----

const lists = {};
const detail = new Detail($('detail'), { state, actions }, closeDetail);
for (const kind of KINDS) lists[kind] = makeList(kind);
const stream = follow(onEvent, onLive, document.hidden);

function onToken() {
    stream.again();
    refresh('overview');
}

$('token').onclick = () => {
    if (tokenLabel() === 'Lock') {
        token.set('');
        onToken();
    } else askToken(state.overview, onToken);
};
$('theme').onclick = nextTheme;
document.querySelector('.skip').onclick = (event) => {
    event.preventDefault();
    $('content').focus();
};
document.onkeydown = (event) => {
    const isTyping = event.target.closest('input, textarea, select, dialog');
    if (event.key !== '/' || isTyping || !lists[state.view]) return;
    event.preventDefault();
    lists[state.view].searchBox.focus();
};
document.onvisibilitychange = () => stream.pause(document.hidden);
window.onhashchange = route;
setInterval(poll, POLL_MS);
showTheme();
route();
if (token.get()) refresh('overview');
