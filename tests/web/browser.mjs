// SPDX-License-Identifier: Apache-2.0
// What the tests of the page share: a browser, cases that are counted, axe, and pictures. A test is
//
//     import { start } from './browser.mjs';
//     const { page, go, check, finish } = await start();
//     await check('what it shows', async () => { ... });
//     await finish();
//
// The environment has SKYCAP_PAGE (where the page is, such as http://127.0.0.1:9100), SKYCAP_TOKEN,
// TIME_FACTOR, and SKYCAP_SCREENSHOTS if pictures are wanted: the folder for them.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { shrinkPicture } from './picture.mjs';

const require = createRequire(process.env.SKYCAP_WEB_MODULES);
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const base = process.env.SKYCAP_PAGE;
export const token = process.env.SKYCAP_TOKEN;
export const slower = Number(process.env.TIME_FACTOR || 1);
export const wantsPictures = Boolean(process.env.SKYCAP_SCREENSHOTS);
const patience = 15000 * slower;

const flags = [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
];

export function expect(isTrue, text) {
    if (!isTrue) throw new Error(text);
}

// Lets the script do something, and waits until it has: `folder` is its $SKYCAP_TMP.
export async function tellScript(folder, name) {
    fs.writeFileSync(`${folder}/${name}`, '');
    while (!fs.existsSync(`${folder}/${name}-done`))
        await new Promise((resolve) => setTimeout(resolve, 50));
}

// Each browser has a new profile, below TMPDIR.
export async function start(options = {}) {
    const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
    const context = await browser.newContext({
        viewport: { width: 1280, height: 760 },
        colorScheme: 'light',
        reducedMotion: 'reduce',
        ...options,
    });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    const test = { browser, context, page, troubles: [], passed: 0, failed: 0 };
    watch(page, test.troubles);
    return {
        page,
        go: (view) => page.goto(`${base}/#/${view}`),
        giveToken: () => giveToken(page),
        press: (text) => press(page, text),
        openByKeyboard: (name) => openByKeyboard(page, name),
        check: (name, run) => check(test, name, run),
        picture: (name) => picture(page, name),
        forgive: (text, mayBeMissing) => forgive(test.troubles, text, mayBeMissing),
        finish: () => finish(test),
    };
}

// What must never happen on the page.
function watch(page, troubles) {
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning')
            troubles.push(`the console says: ${message.text()} (${message.location().url})`);
    });
    page.on('pageerror', (error) => troubles.push(`an error is not caught: ${error.stack}`));
    page.on('request', (request) => {
        const { origin, protocol } = new URL(request.url());
        if (protocol !== 'data:' && origin !== base) troubles.push(`it asks ${request.url()}`);
    });
}

async function check(test, name, run) {
    try {
        await run();
        console.log(`ok ${name}`);
        test.passed += 1;
    } catch (error) {
        console.log(`FAILED CASE: ${name}: ${error.message.split('\n').slice(0, 6).join(' | ')}`);
        test.failed += 1;
        await test.page.screenshot({ path: `${process.env.TMPDIR}/failed-${test.failed}.png` });
    }
}

async function finish(test) {
    await check(test, 'no errors in the console and no requests to others', () =>
        expect(test.troubles.length === 0, test.troubles.join('; ')),
    );
    await test.browser.close();
    console.log(`# result: ${test.passed} passed, ${test.failed} failed, 0 skipped`);
    process.exit(test.failed > 0 ? 1 : 0);
}

// The browser itself says in the console what a request has got; until now such lines were wanted. If
// mayBeMissing, a request may also have ended without one.
function forgive(troubles, text, mayBeMissing = false) {
    const others = troubles.filter((trouble) => !trouble.includes(text));
    expect(mayBeMissing || others.length < troubles.length, `the console does not say ${text}`);
    troubles.splice(0, troubles.length, ...others);
}

async function giveToken(page) {
    await page.getByRole('button', { name: 'Unlock changes' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Token', { exact: true }).fill(token);
    await dialog.getByRole('button', { name: 'Unlock' }).click();
    await page.getByRole('button', { name: 'Lock', exact: true }).waitFor();
}

// ---- by keyboard alone ----

function focused(page) {
    return page.evaluate(
        () =>
            document.activeElement.textContent.trim() ||
            document.activeElement.getAttribute('aria-label'),
    );
}

async function tabTo(page, text) {
    for (let step = 0; step < 60; step += 1) {
        await page.keyboard.press('Tab');
        if ((await focused(page))?.startsWith(text)) return;
    }
    throw new Error(`Tab does not reach ${text}`);
}

// Goes with Tab to what begins with the text, and presses Enter there.
async function press(page, text) {
    await tabTo(page, text);
    await page.keyboard.press('Enter');
}

// In the view of volumes: searches one, which must be the only one that fits, and opens it.
async function openByKeyboard(page, name) {
    await page.getByLabel('Search volumes').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.press('Control+a');
    await page.keyboard.type(name);
    await page.waitForFunction((text) => {
        const names = document.querySelectorAll('#list-volumes .row:not([hidden]) .name');
        return names.length === 1 && names[0].textContent === text;
    }, name);
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement.getAttribute('role') === 'row');
    await page.keyboard.press('Enter');
    await page.locator('#detail').getByRole('heading', { name, exact: true }).waitFor();
}

// What axe finds that is serious or critical, as one text.
export async function faults(page) {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(', ')}`)
        .join('; ');
}

async function picture(page, name) {
    if (!wantsPictures) return;
    await page.mouse.move(0, 0);
    await page.evaluate(() => {
        document.getElementById('news').replaceChildren();
        if (!document.querySelector('dialog')) document.activeElement.blur();
    });
    const image = shrinkPicture(await page.screenshot({ type: 'png' }));
    fs.writeFileSync(path.join(process.env.SKYCAP_SCREENSHOTS, `page-${name}.png`), image);
}
