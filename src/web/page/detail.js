// SPDX-License-Identifier: Apache-2.0
// The panel beside a list: one volume or snapshot, its lineage, and what can be done with it.
import { h, render } from './dom.js';
import { call } from './api.js';
import { ask } from './list.js';
import { NONE, ageAndTime, bytes, count, fullTime, size, time } from './format.js';
import { badge, fact, oldText, operationTitle, progress, rate, timeLeft, tone, usage } from './parts.js';
import { askDelete, askMove, askSnapshot, askVolume } from './dialogs.js';
import { cancelButton } from './views.js';

const STEP = 20; // px from one generation to the next
const LINE = 30; // px, as style.css says of the rows of a lineage

export class Detail {
    // app: { state, actions }
    constructor(element, app, onClose) {
        Object.assign(this, {
            element,
            app,
            onClose,
            kind: '',
            id: '',
            item: null,
            lineage: [],
            error: '',
            loadedMs: 0, // when it was right for the last time
            asked: 0, // how often it was asked for
            answered: 0, // the last of these that was answered
            going: '', // the id of what is being deleted
        });
        element.onkeydown = (event) => {
            if (event.key === 'Escape') onClose();
        };
    }

    open(kind, id) {
        const isNew = kind !== this.kind || id !== this.id;
        this.element.hidden = !id;
        if (!isNew) return;
        Object.assign(this, { kind, id, item: null, lineage: [], error: '' });
        if (!id) return;
        this.draw();
        this.refresh();
        this.element.querySelector('h2').focus({ preventScroll: true });
    }

    // An answer that another one has overtaken is old.
    async refresh() {
        const { kind, id } = this;
        if (!id || this.going === id) return;
        this.asked += 1;
        const number = this.asked;
        const isOld = () => id !== this.id || number < this.answered;
        try {
            const [item, row, lineage] = await Promise.all([
                call(`${kind}?id=${encodeURIComponent(id)}`),
                ask('find', { kind: `${kind}s`, id }),
                ask('lineage', { id }),
            ]);
            if (isOld()) return;
            Object.assign(this, { item: { ...row, ...item }, lineage, error: '' });
            this.loadedMs = Date.now();
        } catch (error) {
            if (isOld()) return;
            if (error.status === 404) Object.assign(this, { item: null, lineage: [] });
            this.error = error.message;
        }
        this.answered = number;
        this.draw();
    }

    draw() {
        const { item, kind, error } = this;
        if (!this.id) return;
        render(
            this.element,
            h(
                'div',
                { class: 'title' },
                h(
                    'div',
                    null,
                    h('p', { class: 'kicker' }, kind),
                    h('h2', { id: 'detail-title', tabindex: '-1' }, item?.name ?? this.id),
                ),
                h(
                    'button',
                    {
                        type: 'button',
                        class: 'icon',
                        'aria-label': 'Close the panel',
                        onclick: this.onClose,
                    },
                    '✕',
                ),
            ),
            error && !item && h('p', { class: 'empty' }, error),
            error && item && h('p', { class: 'trouble', role: 'status' }, oldText(this.loadedMs, error)),
            !item && !error && h('p', { class: 'empty' }, 'Loading …'),
            item && [
                this.buttons(),
                this.running(),
                kind === 'volume' ? volumeFacts(item) : snapshotFacts(item),
                this.drawLineage(),
                parameters(item),
            ],
        );
    }

    // ---- what can be done ----

    buttons() {
        const { state } = this.app;
        const { item, kind } = this;
        if (!state.canChange) return null;
        const nodes = state.nodes?.nodes ?? [];
        const button = (text, onclick, name) =>
            h('button', { type: 'button', class: name, onclick }, text);
        const made = (answer) => this.app.actions.made(answer);
        const source = {
            kind,
            id: item.id,
            name: item.name,
            sizeBytes: item.sizeBytes,
            type: item.type ?? '',
        };
        return h(
            'div',
            { class: 'buttons', role: 'group', 'aria-label': 'Actions' },
            button('Clone', () => askVolume(source, nodes, made)),
            kind === 'volume' &&
                button('Snapshot', () =>
                    askSnapshot(item, (answer) => this.app.actions.taken(answer)),
                ),
            kind === 'volume' &&
                nodes.length > 1 &&
                button('Move', () =>
                    askMove(item, nodes, (node, answer) =>
                        this.app.actions.moved(item.name, node, answer),
                    ),
                ),
            h('span', { class: 'space' }),
            button(
                'Delete',
                () => askDelete(kind, item, (deletion) => this.goes(item, deletion)),
                'danger',
            ),
        );
    }

    // The page may hear that it is gone before the answer is here: it must not be asked for again.
    async goes(item, deletion) {
        this.going = item.id;
        try {
            await deletion;
        } finally {
            this.going = '';
        }
        if (this.id === item.id) {
            this.id = '';
            this.onClose();
        }
        this.app.actions.changed(`Deleted ${item.name}.`);
    }

    running() {
        const { state, actions } = this.app;
        const list = state.operations.filter(
            (operation) => operation.subject === this.id && operation.state === 'running',
        );
        return list.map((operation) =>
            h(
                'div',
                { class: 'running', key: operation.id },
                h(
                    'div',
                    { class: 'title' },
                    h('strong', null, operationTitle(operation)),
                    state.canChange && cancelButton(operation, actions),
                ),
                progress(operation, state.isLive),
                h(
                    'p',
                    { class: 'quiet' },
                    'Rate ',
                    rate(operation, state.isLive),
                    ' · left ',
                    timeLeft(operation, state.isLive),
                ),
            ),
        );
    }

    // ---- lineage ----

    drawLineage() {
        const { lineage, id } = this;
        if (lineage.length === 0) return null;
        const depth = lineage.reduce((most, member) => Math.max(most, member.depth), 0);
        return [
            h('h3', null, 'Lineage'),
            h(
                'div',
                { class: 'lineage' },
                h(
                    'svg',
                    {
                        width: (depth + 1) * STEP,
                        height: lineage.length * LINE,
                        'aria-hidden': 'true',
                    },
                    lineage.map((member, at) => edge(lineage, member, at)),
                    lineage.map((member, at) => mark(member, at, member.id === id)),
                ),
                h(
                    'ul',
                    null,
                    lineage.map((member) =>
                        h(
                            'li',
                            {
                                class: member.id === id ? 'current' : null,
                                style: { 'padding-left': `${(member.depth + 1) * STEP + 2}px` },
                            },
                            relative(member, id),
                        ),
                    ),
                ),
            ),
            lineage.length > 1 &&
                h(
                    'p',
                    { class: 'legend quiet' },
                    legend('volume'),
                    ' volume ',
                    legend('snapshot'),
                    ' snapshot',
                ),
        ];
    }
}

function place(member, at) {
    return [member.depth * STEP + STEP / 2, at * LINE + LINE / 2];
}

// From the parent down, then to the right; dashed to a snapshot.
function edge(lineage, member, at) {
    if (member.parent < 0) return null;
    const [x, y] = place(member, at);
    const [parentX, parentY] = place(lineage[member.parent], member.parent);
    return h('path', {
        class: `edge ${member.kind}`,
        d: `M${parentX} ${parentY + 6}V${y - 8}Q${parentX} ${y} ${parentX + 8} ${y}H${x - 6}`,
    });
}

function mark(member, at, isCurrent) {
    const [x, y] = place(member, at);
    const name = `mark ${member.kind}${isCurrent ? ' current' : ''}`;
    if (member.kind === 'more') return null;
    if (member.kind === 'snapshot')
        return h('path', {
            class: name,
            d: `M${x} ${y - 6}L${x + 6} ${y}L${x} ${y + 6}L${x - 6} ${y}Z`,
        });
    return h('circle', { class: name, cx: x, cy: y, r: 5 });
}

function legend(kind) {
    return h(
        'svg',
        { width: 14, height: 14, 'aria-hidden': 'true' },
        mark({ kind, depth: -0.15 }, -0.27, false),
    );
}

function relative(member, id) {
    const level = h('span', { class: 'hidden' }, `level ${member.depth + 1}, ${member.kind}: `);
    if (member.kind === 'more') return h('span', { class: 'quiet' }, member.name);
    if (member.kind === 'gone')
        return h(
            'span',
            { class: 'quiet', title: member.id },
            `${member.name || 'its source'}, deleted`,
        );
    const text = [level, h('span', { class: 'name' }, member.name)];
    const title = `${member.name} (${member.id}), made ${fullTime(member.createdMs)}`;
    const link =
        member.id === id
            ? h('span', { class: 'link', title, 'aria-current': 'true' }, text)
            : h(
                  'a',
                  {
                      class: 'link',
                      title,
                      href: `#/${member.kind}s/${encodeURIComponent(member.id)}`,
                  },
                  text,
              );
    return [
        link,
        member.state !== 'ready' &&
            h('span', { class: `badge ${tone(member.state)}` }, member.state),
        h('span', { class: 'tag' }, member.node || NONE),
    ];
}

// ---- facts ----

function volumeFacts(item) {
    const list = (values) =>
        values?.length > 0 ? values.map((value) => h('span', { class: 'tag' }, value)) : NONE;
    return h(
        'dl',
        { class: 'facts' },
        fact(
            'State',
            badge(item.state),
            item.state === 'unhealthy' && h('span', { class: 'trouble' }, item.health),
        ),
        fact('Node', item.node || NONE, item.movingTo && ` → ${item.movingTo}`),
        fact('Size', size(item.sizeBytes)),
        fact('Used', used(item)),
        fact('Type', item.type || NONE),
        fact('Made', time(item.createdMs)),
        fact(
            'Made from',
            item.source
                ? h(
                      'a',
                      { href: `#/${item.source.kind}s/${encodeURIComponent(item.source.id)}` },
                      item.source.name || item.source.id,
                  )
                : NONE,
        ),
        fact('Attached to', list(item.attachedTo)),
        fact(
            'Published at',
            item.publishedAt?.length > 0
                ? item.publishedAt.map((path) => h('code', null, path))
                : NONE,
        ),
        fact(
            'Last move',
            typeof item.unavailableMs === 'number'
                ? `it was unavailable for ${count(item.unavailableMs)} ms`
                : NONE,
        ),
        fact('Id', h('code', null, item.id)),
    );
}

// The node where it is published can tell.
function used({ usedBytes, sizeBytes, name }) {
    return typeof usedBytes === 'number'
        ? usage(usedBytes, sizeBytes, `Space used by ${name}`)
        : h('span', { class: 'quiet' }, 'known only where it is published');
}

function snapshotFacts(item) {
    return h(
        'dl',
        { class: 'facts' },
        fact('State', badge(item.ready ? 'ready' : 'not ready')),
        fact(
            'Of volume',
            h(
                'a',
                { href: `#/volumes/${encodeURIComponent(item.volumeId)}` },
                item.volumeName || item.volumeId,
            ),
        ),
        fact('Node', item.node || NONE),
        fact(
            'Held by',
            item.holders?.length > 0
                ? item.holders.map((node) => h('span', { class: 'tag' }, node))
                : NONE,
        ),
        fact('Size', item.sizeBytes > 0 ? bytes(item.sizeBytes) : NONE),
        fact('Made', time(item.createdMs)),
        fact(
            'Exports',
            item.exports?.length > 0
                ? item.exports.map((one) =>
                      h(
                          'div',
                          null,
                          one.repository,
                          ' ',
                          badge(one.state),
                          ' ',
                          ageAndTime(one.timeMs),
                      ),
                  )
                : NONE,
        ),
        fact('Id', h('code', null, item.id)),
    );
}

function parameters(item) {
    const list = Object.entries(item.parameters ?? {});
    return (
        list.length > 0 && [
            h('h3', null, 'Parameters'),
            h(
                'dl',
                { class: 'facts' },
                list.map(([name, value]) => fact(name, h('code', null, value))),
            ),
        ]
    );
}
