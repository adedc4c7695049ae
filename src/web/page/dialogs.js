// SPDX-License-Identifier: Apache-2.0
// Dialogs: each asks for what one change needs, and stays open with the reason when the server refuses.
// The browser keeps the focus inside, and gives it back to what had it before.
import { h, make } from './dom.js';
import { call, token } from './api.js';
import { bytes } from './format.js';
import { tell } from './news.js';

const SIZES = { MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
const TYPES = {
    directory: 'Directory',
    ext4: 'File system ext4',
    xfs: 'File system xfs',
    block: 'Block device',
};

// Without an action it only tells something.
// fields: [{ name, label, kind: "text" | "password" | "select" | "size" | "lines", value, options, hint, isRequired }]
function openDialog({ title, text, fields = [], action, isDangerous, more, run }) {
    const error = make('p', { class: 'trouble', role: 'alert' });
    const submit = make(
        'button',
        { type: 'submit', class: isDangerous ? 'primary danger' : 'primary', hidden: !action },
        action,
    );
    const form = make(
        'form',
        null,
        h('h2', { id: 'dialog-title' }, title),
        text && h('p', { class: 'quiet', id: 'dialog-text' }, text),
        fields.map(field),
    );
    const buttons = make(
        'div',
        { class: 'buttons' },
        more,
        h('span', { class: 'space' }),
        h('button', { type: 'button', value: 'close', onclick: () => dialog.close() }, 'Close'),
    );
    const dialog = make('dialog', {
        'aria-labelledby': 'dialog-title',
        'aria-describedby': text ? 'dialog-text' : null,
    });
    buttons.append(submit);
    form.append(error, buttons);
    dialog.append(form);
    // A button that is disabled would lose the focus.
    let isRunning = false;
    const setRunning = (value) => {
        isRunning = value;
        submit.setAttribute('aria-disabled', String(value));
    };
    form.onsubmit = async (event) => {
        event.preventDefault();
        if (isRunning) return;
        setRunning(true);
        error.textContent = '';
        try {
            await run(valuesOf(form, fields));
            dialog.close();
        } catch (reason) {
            if (dialog.open) error.textContent = reason.message;
            else tell(`${title.replace('?', '')}: ${reason.message}`, 'tone-bad');
        }
        setRunning(false);
    };
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
}

function field({ name, label, hint, ...rest }) {
    const id = `field-${name}`;
    return h(
        'div',
        { class: 'field' },
        h('label', { for: id }, label),
        control({ id, name, hint, ...rest }),
        hint && h('small', { id: `${id}-hint` }, hint),
    );
}

function control({ id, name, kind, value, options, hint, isRequired }) {
    const common = {
        id,
        name,
        required: Boolean(isRequired),
        'aria-describedby': hint ? `${id}-hint` : null,
    };
    if (kind === 'select')
        return h(
            'select',
            common,
            options.map(([key, text]) =>
                h('option', { value: key, selected: key === value }, text),
            ),
        );
    if (kind === 'lines') return h('textarea', { ...common, rows: 2, spellcheck: 'false' });
    if (kind === 'size') return sizeControl(common, value);
    return h('input', {
        ...common,
        type: kind ?? 'text',
        value,
        autocomplete: 'off',
        spellcheck: 'false',
    });
}

function sizeControl(common, value) {
    const unit = value >= SIZES.TiB ? 'TiB' : !value || value >= SIZES.GiB ? 'GiB' : 'MiB';
    const number = value ? Math.ceil((100 * value) / SIZES[unit]) / 100 : null;
    return h(
        'div',
        { class: 'pair' },
        h('input', { ...common, type: 'number', min: 0, step: 'any', value: number }),
        h(
            'select',
            { name: `${common.name}-unit`, 'aria-label': 'Unit' },
            Object.keys(SIZES).map((name) =>
                h('option', { value: name, selected: name === unit }, name),
            ),
        ),
    );
}

function valuesOf(form, fields) {
    const values = {};
    for (const { name, kind } of fields) {
        const value = form.elements[name].value.trim();
        if (kind === 'size')
            values[name] =
                value === ''
                    ? null
                    : Math.round(Number(value) * SIZES[form.elements[`${name}-unit`].value]);
        else values[name] = kind === 'lines' ? parametersOf(value) : value;
    }
    return values;
}

function parametersOf(text) {
    const parameters = {};
    for (const line of text
        .split('\n')
        .map((one) => one.trim())
        .filter(Boolean)) {
        const [, name, value] = line.match(/^([^=]+)=(.*)$/) ?? [];
        if (!name) throw new Error(`"${line}" is not of the form name=value`);
        parameters[name.trim()] = value.trim();
    }
    return parameters;
}

function nodeOptions(nodes, except) {
    return nodes
        .filter((node) => node.id !== except)
        .map((node) => [
            node.id,
            `${node.id}${typeof node.availableBytes === 'number' ? `, ${bytes(node.availableBytes)} free` : ''}${node.state === 'ready' ? '' : `, ${node.state}`}`,
        ]);
}

// ---- what can be asked ----

function tellHowToUnlock() {
    openDialog({
        title: 'Unlock changes',
        text: [
            'This server has no token, so the page can only look. To allow changes, write a token into a ',
            'file that only its owner can read, and start the server with ',
            h('code', null, '--http-token-file FILE'),
            '.',
        ],
    });
}

export function askToken(overview, onChange) {
    if (overview && !overview.tokenConfigured) return tellHowToUnlock();
    const has = token.get() !== '';
    const forget = () => {
        token.set('');
        dialog.close();
        onChange();
    };
    const dialog = openDialog({
        title: 'Unlock changes',
        text: "With the server's token this page can make, copy, move and delete volumes. It is kept until this tab is closed.",
        fields: [{ name: 'secret', label: 'Token', kind: 'password', isRequired: true }],
        more: has && h('button', { type: 'button', onclick: forget }, 'Forget the token'),
        action: 'Unlock',
        async run({ secret }) {
            const answer = await call('overview', null, secret);
            if (!answer.writable) throw new Error('The server does not accept this token.');
            token.set(secret);
            onChange();
        },
    });
}

// Volumes of other drivers have no names: their ids stand for them, and are no names.
function proposal({ name, id }, more) {
    return name === id ? null : `${name}-${more}`;
}

// source: null, or { kind: "volume" or "snapshot", id, name, sizeBytes, type }
export function askVolume(source, nodes, onDone) {
    const typed = source?.type
        ? []
        : [
              {
                  name: 'type',
                  label: 'Type',
                  kind: 'select',
                  options: Object.entries(TYPES),
                  value: 'directory',
              },
          ];
    const placed =
        nodes.length > 1
            ? [
                  {
                      name: 'node',
                      label: 'Node',
                      kind: 'select',
                      options: [['', 'Where there is most room'], ...nodeOptions(nodes)],
                      value: '',
                  },
              ]
            : [];
    openDialog({
        title: source ? `Clone ${source.name}` : 'New volume',
        text: source
            ? `A writable copy of the ${source.kind}. It takes no space until it changes, where the storage can do that.`
            : null,
        fields: [
            {
                name: 'name',
                label: 'Name',
                isRequired: true,
                value: source ? proposal(source, 'clone') : null,
            },
            {
                name: 'sizeBytes',
                label: 'Size',
                kind: 'size',
                value: source?.sizeBytes ?? 2 ** 30,
                hint: source
                    ? 'Not smaller than the source.'
                    : 'Empty: as much as the server gives by default.',
            },
            ...typed,
            ...placed,
            {
                name: 'parameters',
                label: 'Parameters',
                kind: 'lines',
                hint: 'One name=value per line; may be empty.',
            },
        ],
        action: source ? 'Clone' : 'Create',
        async run(values) {
            const answer = await call('volumes', {
                type: source?.type ?? '',
                node: '',
                ...values,
                sourceVolumeId: source?.kind === 'volume' ? source.id : '',
                sourceSnapshotId: source?.kind === 'snapshot' ? source.id : '',
            });
            onDone(answer);
        },
    });
}

export function askSnapshot(volume, onDone) {
    const stamp = new Date().toISOString().slice(0, 19).replaceAll(/[-:]/g, '').replace('T', '-');
    openDialog({
        title: `Snapshot of ${volume.name}`,
        fields: [
            { name: 'name', label: 'Name', isRequired: true, value: proposal(volume, stamp) },
        ],
        action: 'Take the snapshot',
        run: async ({ name }) => onDone(await call('snapshots', { name, volumeId: volume.id })),
    });
}

export function askMove(volume, nodes, onDone) {
    openDialog({
        title: `Move ${volume.name}`,
        text: `It is on ${volume.node}. It stays in use while its data is copied; only the last step makes it wait.`,
        fields: [
            {
                name: 'node',
                label: 'To node',
                kind: 'select',
                options: nodeOptions(nodes, volume.node),
                isRequired: true,
            },
        ],
        action: 'Move',
        run: async ({ node }) => onDone(node, await call('moves', { volumeId: volume.id, node })),
    });
}

// `onBegun` gets the promise of the deletion, and ends when all is done.
export function askDelete(kind, item, onBegun) {
    openDialog({
        title: `Delete ${item.name}?`,
        text: `The ${kind} and its data are gone then. Nothing brings them back.`,
        action: 'Delete',
        isDangerous: true,
        run: () => onBegun(call(`${kind}s/delete`, { id: item.id })),
    });
}
