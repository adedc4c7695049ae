// SPDX-License-Identifier: Apache-2.0
// The columns of the lists of volumes and snapshots, and what is said above them.
import { NONE, bytes, count, fullTime, size, timeText } from './format.js';
import { tone } from './parts.js';

const by = (name) => (row) => row[name] || '';
const sized = (text) => ({
    key: 'sizeBytes',
    label: 'Size',
    isNumber: true,
    text: (row) => text(row.sizeBytes),
});
const made = {
    key: 'createdMs',
    label: 'Made',
    isNumber: true,
    text: (row) => timeText(row.createdMs),
    title: (row) => fullTime(row.createdMs),
};

export const listColumns = {
    volumes: [
        {
            key: 'name',
            label: 'Name',
            text: by('name'),
            tone: () => 'name',
            title: (row) => `${row.name} (${row.id})`,
        },
        sized(size),
        { key: 'type', label: 'Type', text: by('type') },
        { key: 'node', label: 'Node', text: by('node') },
        {
            key: 'state',
            label: 'State',
            text: by('state'),
            tone: (row) => `badge ${tone(row.state)}`,
        },
        { key: 'sourceName', label: 'Made from', text: by('sourceName') },
        made,
    ],
    snapshots: [
        {
            key: 'name',
            label: 'Name',
            text: by('name'),
            tone: () => 'name',
            title: (row) => `${row.name} (${row.id})`,
        },
        sized((value) => (value > 0 ? bytes(value) : NONE)),
        { key: 'type', label: 'Type', text: by('type') },
        { key: 'volumeName', label: 'Of volume', text: by('volumeName') },
        { key: 'node', label: 'Node', text: by('node') },
        {
            key: 'ready',
            label: 'State',
            text: (row) => (row.ready ? 'ready' : 'not ready'),
            tone: (row) => `badge ${tone(row.ready ? 'ready' : 'not ready')}`,
        },
        made,
    ],
};

export function listInfo({ version, count: found, total, loading, loaded, error, degraded }) {
    if (error && version === 0) return error;
    const parts = [found === total ? count(total) : `${count(found)} of ${count(total)}`];
    if (loading && loaded > total) parts.push(`loading, ${count(loaded)} so far`);
    if (degraded.length > 0) parts.push('some may be missing');
    return parts.join(' · ');
}
