// SPDX-License-Identifier: Apache-2.0
// Says numbers and times for people, in the form of their locale.
import { h } from './dom.js';

export const NONE = '–';
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const short = [0, 1, 2].map(
    (digits) => new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }),
);
const clock = new Intl.DateTimeFormat(undefined, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
});
const day = new Intl.DateTimeFormat(undefined, {
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
});
const date = new Intl.DateTimeFormat(undefined, {
    year: 'numeric',
    month: 'short',
    day: 'numeric',
});
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'long' });

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

export function count(value) {
    return isNumber(value) ? whole.format(value) : NONE;
}

function rounded(value) {
    return short[value >= 100 ? 0 : value >= 10 ? 1 : 2].format(value);
}

export function bytes(value) {
    if (!isNumber(value)) return NONE;
    let unit = 0;
    while (value >= 1024 && unit < UNITS.length - 1) {
        value /= 1024;
        unit += 1;
    }
    return `${unit === 0 ? whole.format(value) : rounded(value)} ${UNITS[unit]}`;
}

// Of a volume: 0 means that nothing limits it.
export function size(value) {
    return value === 0 ? 'unlimited' : bytes(value);
}

export function amount(value, units) {
    return units === 'bytes' ? bytes(value) : `${count(value)}${units ? ` ${units}` : ''}`;
}

export function microseconds(value) {
    if (!isNumber(value)) return NONE;
    if (value < 1000) return `${rounded(value)} µs`;
    return value < 1e6 ? `${rounded(value / 1000)} ms` : `${rounded(value / 1e6)} s`;
}

export function duration(seconds) {
    if (!isNumber(seconds)) return NONE;
    const s = Math.max(0, Math.round(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function timeText(ms) {
    if (!ms) return NONE;
    const then = new Date(ms);
    const now = new Date();
    if (then.toDateString() === now.toDateString()) return clock.format(then);
    return then.getFullYear() === now.getFullYear() ? day.format(then) : date.format(then);
}

export function fullTime(ms) {
    return ms ? full.format(new Date(ms)) : '';
}

export function ageText(ms) {
    const seconds = Math.max(0, (Date.now() - ms) / 1000);
    if (seconds < 10) return 'just now';
    if (seconds < 60) return `${Math.floor(seconds / 10) * 10} s ago`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
    if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ago`;
    return `${Math.floor(seconds / 86400)} days ago`;
}

function timeElement(ms, text, name) {
    return ms
        ? h(
              'time',
              { datetime: new Date(ms).toISOString(), title: fullTime(ms), class: name },
              text,
          )
        : h('span', { class: 'none' }, NONE);
}

export function time(ms) {
    return timeElement(ms, timeText(ms));
}

export function age(ms) {
    return timeElement(ms, ms ? ageText(ms) : '');
}

// Its age first, and the time beside it.
export function ageAndTime(ms) {
    return ms
        ? [timeElement(ms, ageText(ms)), ' ', timeElement(ms, timeText(ms), 'quiet')]
        : timeElement(ms);
}
