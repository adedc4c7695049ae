// SPDX-License-Identifier: Apache-2.0
// The views that are tables: nodes, operations, connections, exports, latencies. Each is a function of the state.
import { h } from './dom.js';
import { NONE, age, ageAndTime, bytes, count, microseconds, time } from './format.js';
import { badge, oldText, operationText, operationTitle, progress, rate, table, timeLeft, usage } from './parts.js';

const SHORT_ID = 12; // digits, as the command line prints

function title(text, ...more) {
    return h('div', { class: 'title' }, h('h1', null, text), more);
}

// What there is to say as long as there is no data.
function pending(state, name) {
    return h('p', { class: 'empty' }, state.errors[name] || 'Loading …');
}

function trouble(text) {
    return text ? h('span', { class: 'trouble' }, text) : h('span', { class: 'none' }, NONE);
}

// ---- nodes ----

function tile(label, value, note) {
    return h(
        'div',
        { class: 'tile' },
        h('dt', null, label),
        h('dd', null, value, note && h('small', null, note)),
    );
}

function tiles(state) {
    const { totals, operations } = state;
    const nodes = state.nodes?.nodes ?? [];
    const ready = nodes.filter((node) => node.state === 'ready').length;
    const running = operations.filter((operation) => operation.state === 'running').length;
    const sized = nodes.filter((node) => node.capacityBytes > 0);
    const sum = (name) => sized.reduce((total, node) => total + (node[name] ?? 0), 0);
    return h(
        'dl',
        { class: 'tiles' },
        tile(
            'Nodes',
            state.nodes ? count(nodes.length) : NONE,
            state.nodes &&
                (ready === nodes.length ? 'all ready' : `${count(nodes.length - ready)} not ready`),
        ),
        tile('Volumes', count(totals.volumes)),
        tile('Snapshots', count(totals.snapshots)),
        tile(
            'Free',
            sized.length > 0 ? bytes(sum('availableBytes')) : NONE,
            sized.length > 0 && `of ${bytes(sum('capacityBytes'))}`,
        ),
        tile('Operations', count(running), running > 0 ? 'running' : null),
    );
}

const ANSWERING = ['ready', 'not-ready', 'draining'];

const nodeColumns = [
    {
        label: 'Node',
        cell: (node) => [
            h('strong', null, node.id),
            node.self && h('span', { class: 'tag' }, 'this one'),
        ],
    },
    {
        label: 'State',
        cell: (node) => [
            badge(node.state),
            node.trouble && h('small', { class: 'trouble' }, node.trouble),
        ],
    },
    {
        label: 'Space used',
        class: 'wide',
        cell: (node) =>
            usage(
                typeof node.capacityBytes === 'number'
                    ? node.capacityBytes - node.availableBytes
                    : null,
                node.capacityBytes,
                `Space used on ${node.id}`,
            ),
    },
    { label: 'Free', isNumber: true, cell: (node) => bytes(node.availableBytes) },
    { label: 'Version', cell: (node) => node.version || NONE },
    { label: 'Address', cell: (node) => h('span', { class: 'mono' }, node.address || NONE) },
    {
        label: 'Last seen',
        cell: ({ self, state, lastSeenMs }) =>
            self || ANSWERING.includes(state) ? 'now' : age(lastSeenMs),
    },
    { label: 'Topology', cell: topology },
];

// Each node is a place of its own; that one needs no words.
function topology(node) {
    const list = Object.entries(node.topology ?? {}).filter(([, value]) => value !== node.id);
    return list.length === 0
        ? NONE
        : list.map(([name, value]) =>
              h(
                  'span',
                  { class: 'tag', title: `${name}=${value}` },
                  `${name.replace(/^.*\//, '')}=${value}`,
              ),
          );
}

function nodes(state) {
    const list = state.nodes?.nodes;
    return [
        title('Nodes'),
        tiles(state),
        list
            ? table('Nodes', nodeColumns, list, (node) => node.id, 'No node is known.')
            : pending(state, 'nodes'),
    ];
}

// ---- operations ----

function operationColumns(state, actions) {
    return [
        {
            label: 'Operation',
            cell: (operation) => [
                h('strong', null, operationTitle(operation)),
                operationText(operation) && h('small', null, operationText(operation)),
            ],
        },
        { label: 'State', width: 112, cell: (operation) => badge(operation.state) },
        {
            label: 'Node',
            width: 88,
            cell: ({ node }) => (node ? h('span', { title: node }, node) : NONE),
        },
        {
            label: 'Progress',
            width: 192,
            class: 'wide',
            cell: (operation) =>
                operation.error ? trouble(operation.error) : progress(operation, state.isLive),
        },
        {
            label: 'Rate',
            isNumber: true,
            width: 100,
            cell: (operation) => rate(operation, state.isLive),
        },
        {
            label: 'Left',
            isNumber: true,
            width: 98,
            cell: (operation) => timeLeft(operation, state.isLive),
        },
        {
            label: 'Begun',
            isNumber: true,
            width: 84,
            cell: (operation) => time(operation.startedMs),
        },
        {
            label: '',
            width: 92,
            cell: (operation) =>
                state.canChange &&
                operation.state === 'running' &&
                cancelButton(operation, actions),
        },
    ];
}

export function cancelButton(operation, actions) {
    return h(
        'button',
        {
            type: 'button',
            class: 'small',
            'aria-label': `Cancel: ${operationTitle(operation)}`,
            onclick: () => actions.cancel(operation),
        },
        'Cancel',
    );
}

function operations(state, actions) {
    const columns = operationColumns(state, actions);
    if (!state.canChange) columns.pop();
    else columns.at(-1).label = h('span', { class: 'hidden' }, 'Actions');
    const running = state.operations.filter((operation) => operation.state === 'running');
    const ended = state.operations
        .filter((operation) => operation.state !== 'running')
        .sort((a, b) => b.updatedMs - a.updatedMs);
    return [
        title('Operations', h('p', { class: 'quiet' }, `${count(running.length)} running`)),
        table(
            'Operations that run',
            columns,
            running,
            (operation) => operation.id,
            'Nothing runs at the moment. Copies, moves, exports and drills appear here.',
        ),
        ended.length > 0 && [
            h('h2', null, 'Ended in the last minute'),
            table('Operations that ended', columns, ended, (operation) => operation.id),
        ],
    ];
}

// ---- connections ----

const connectionColumns = [
    { label: 'Connection', cell: (connection) => h('strong', null, connection.name) },
    { label: 'State', cell: (connection) => badge(connection.state, connection.trouble) },
    { label: 'Driver', cell: (connection) => connection.driver || NONE },
    { label: 'Since', cell: (connection) => ageAndTime(connection.sinceMs) },
    { label: 'Calls', isNumber: true, cell: (connection) => count(connection.calls) },
    {
        label: 'Mean',
        isNumber: true,
        cell: (connection) => microseconds(connection.meanMicroseconds),
    },
    { label: 'Last error', cell: (connection) => trouble(connection.trouble) },
];

function connections(state) {
    const list = state.connections?.connections;
    return [
        title('Connections'),
        list
            ? table(
                  'Connections',
                  connectionColumns,
                  list,
                  (connection) => connection.name,
                  'This server has no connections to other CSI drivers. --connections DIR reads their files.',
              )
            : pending(state, 'connections'),
    ];
}

// ---- exports ----

const exportColumns = [
    { label: 'Snapshot', cell: (item) => h('strong', null, item.snapshotName || NONE) },
    { label: 'Volume', cell: (item) => item.volumeName || NONE },
    { label: 'Exported', cell: (item) => ageAndTime(item.timeMs) },
    { label: 'Content', isNumber: true, cell: (item) => bytes(item.contentBytes) },
    {
        label: 'Id',
        cell: ({ id }) => h('span', { class: 'mono quiet', title: id }, id.slice(0, SHORT_ID)),
    },
];

function repository(state, item, actions) {
    return h(
        'article',
        { class: 'repository', key: item.name },
        h(
            'div',
            { class: 'title' },
            h('h2', null, item.name),
            badge(item.state, item.trouble),
            h('span', { class: 'mono quiet' }, item.url),
        ),
        h(
            'dl',
            { class: 'tiles' },
            tile('Last export', ageAndTime(item.lastExportMs)),
            tile(
                'Last good drill',
                ageAndTime(item.lastDrillMs),
                !item.lastDrillMs && 'none has succeeded',
            ),
            tile('Exports', count(item.snapshots)),
            tile('Stored', bytes(item.storedBytes)),
        ),
        item.trouble && h('p', { class: 'trouble' }, item.trouble),
        h(
            'details',
            { ontoggle: (event) => actions.toggleExports(item.name, event.target.open) },
            h('summary', null, `Exports in ${item.name}`),
            exportList(item.name, state.exports[item.name], actions),
        ),
    );
}

function exportList(name, open, actions) {
    if (!open?.all) return h('p', { class: 'empty' }, open?.error || 'Loading …');
    return [
        open.error && h('p', { class: 'trouble' }, oldText(open.loadedMs, open.error)),
        table(
            `Exports in ${name}`,
            exportColumns,
            open.all.slice(0, open.shown),
            (one) => one.id,
            'It holds no exports.',
        ),
        open.all.length > open.shown &&
            h(
                'div',
                { class: 'more' },
                h(
                    'span',
                    { class: 'quiet' },
                    `The newest ${count(open.shown)} of ${count(open.all.length)}.`,
                ),
                h(
                    'button',
                    { type: 'button', class: 'small', onclick: () => actions.showMoreExports(name) },
                    'Show more',
                ),
            ),
    ];
}

function repositories(state, actions) {
    const list = state.repositories?.repositories;
    return [
        title('Exports'),
        !list
            ? pending(state, 'repositories')
            : list.length === 0
              ? h(
                    'p',
                    { class: 'empty' },
                    'This server has no repository. Exports and drills appear here when it has one.',
                )
              : list.map((item) => repository(state, item, actions)),
    ];
}

// ---- latencies ----

// A bar on a logarithmic scale from 10 µs to 10 s.
function latencyBar(us) {
    const place = us > 0 ? Math.min(1, Math.max(0.01, Math.log10(us / 10) / 6)) : 0;
    return h(
        'div',
        { class: 'meter plain', 'aria-hidden': 'true' },
        h('div', { style: { width: `${(100 * place).toFixed(1)}%` } }),
    );
}

const latencyColumns = [
    {
        label: 'Method',
        cell: ({ method }) => [
            h('strong', null, method.replace(/^.*\//, '')),
            h('small', null, method.replace(/\/.*$/, '')),
        ],
    },
    { label: 'Calls', isNumber: true, width: 90, cell: ({ calls }) => count(calls) },
    {
        label: 'Errors',
        isNumber: true,
        width: 90,
        cell: ({ errors }) =>
            errors > 0 ? h('span', { class: 'trouble' }, count(errors)) : count(errors),
    },
    { label: 'Mean', isNumber: true, width: 100, cell: ({ meanUs }) => microseconds(meanUs) },
    { label: 'Median', isNumber: true, width: 100, cell: ({ p50Us }) => microseconds(p50Us) },
    { label: '99 %', isNumber: true, width: 100, cell: ({ p99Us }) => microseconds(p99Us) },
    {
        label: '99 %, 10 µs to 10 s',
        class: 'wide',
        width: 250,
        cell: ({ p99Us }) => latencyBar(p99Us),
    },
];

// What orchestrators wait for. The page itself calls Probe, and those that are not of CSI, all the time.
function isWaitedFor(method) {
    return method.startsWith('csi.') && !method.startsWith('csi.v1.Identity/');
}

function latencies(state) {
    const list = state.latencies?.methods;
    const sorted = [...(list ?? [])].sort((a, b) => b.calls - a.calls);
    const groups = [
        ['Calls for volumes and snapshots', true],
        ['Other calls, with those of this page', false],
    ];
    return [
        title('Latencies', h('p', { class: 'quiet' }, 'of the calls since the server started')),
        list
            ? groups.map(([label, isFirst]) => [
                  h('h2', null, label),
                  table(
                      label,
                      latencyColumns,
                      sorted.filter(({ method }) => isWaitedFor(method) === isFirst),
                      ({ method }) => method,
                      'None was called yet.',
                  ),
              ])
            : pending(state, 'latencies'),
    ];
}

export const views = { nodes, operations, connections, exports: repositories, latencies };
