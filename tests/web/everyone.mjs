// SPDX-License-Identifier: Apache-2.0
// Every view, panel and dialog with axe, light and dark; then a volume by keyboard alone.
import { expect, faults, start } from './browser.mjs';

const views = [
    'nodes',
    'volumes',
    'snapshots',
    'operations',
    'connections',
    'exports',
    'latencies',
];
const { page, go, check, giveToken, finish } = await start();

async function hasNoFaults(what) {
    await check(`axe finds nothing serious: ${what}`, async () => {
        const found = await faults(page);
        expect(found === '', found);
    });
}

async function openFirst(view) {
    await go(view);
    await page.locator(`#list-${view} .rows .name`).first().click();
    await page.locator('#detail .lineage').waitFor();
}

await go('nodes');
await page.getByText('Live', { exact: true }).waitFor();
await giveToken();
for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    for (const view of views) {
        await go(view);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForFunction(
            () => !document.querySelector('main').innerText.includes('Loading'),
        );
        await hasNoFaults(`${view}, ${theme}`);
    }
    for (const view of ['volumes', 'snapshots']) {
        await openFirst(view);
        await hasNoFaults(`the panel of ${view}, ${theme}`);
    }
    await go('volumes');
    await page.getByRole('button', { name: 'New volume' }).click();
    await hasNoFaults(`a dialog, ${theme}`);
    await page.keyboard.press('Escape');
}

await check('the switch of the theme changes the colours', async () => {
    const ground = () =>
        page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await ground();
    const button = page.getByRole('button', { name: /^Theme/ });
    await button.click();
    await button.click();
    expect(
        (await button.getAttribute('aria-label')) === 'Theme: Dark',
        'it is not dark after two steps',
    );
    expect((await ground()) !== light, 'dark looks like light');
    await button.click();
    expect((await ground()) === light, "the third step is not the system's theme");
});

// ---- by keyboard alone: from here on nothing is clicked ----

const focused = () =>
    page.evaluate(
        () =>
            document.activeElement.textContent.trim() ||
            document.activeElement.getAttribute('aria-label'),
    );

async function tabTo(text) {
    for (let step = 0; step < 60; step += 1) {
        await page.keyboard.press('Tab');
        if ((await focused())?.startsWith(text)) return;
    }
    throw new Error(`Tab does not reach ${text}`);
}

await check('a volume is made by keyboard alone', async () => {
    await go('nodes');
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await tabTo('Volumes');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'New volume' }).waitFor();
    await tabTo('New volume');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('by-keyboard');
    await page.keyboard.press('Enter');
    await page.locator('#detail').getByRole('heading', { name: 'by-keyboard' }).waitFor();
});

await check('the panel closes, and the focus is back in the list', async () => {
    await page.keyboard.press('Escape');
    await page.locator('#detail').waitFor({ state: 'hidden' });
    await page.waitForFunction(() => document.activeElement.closest('.grid') !== null);
});

await check('a volume is found and opened by keyboard alone', async () => {
    await page.keyboard.press('/');
    await page.keyboard.type('by-key');
    await page.waitForFunction(
        () => document.querySelector('#list-volumes .grid').getAttribute('aria-rowcount') === '2',
    );
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction(() => document.activeElement.getAttribute('role') === 'row');
    await page.keyboard.press('Enter');
    await page.locator('#detail').getByRole('heading', { name: 'by-keyboard' }).waitFor();
    expect(
        await page.evaluate(() => document.activeElement.closest('#detail') !== null),
        'the focus is not in the panel',
    );
});

await check('rows are walked with the keys of a grid', async () => {
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Delete');
    await page.waitForFunction(
        () =>
            Number(document.querySelector('#list-volumes .grid').getAttribute('aria-rowcount')) >
            50,
    );
    await page.keyboard.press('ArrowDown');
    const row = () =>
        page.evaluate(() => Number(document.activeElement.getAttribute('aria-rowindex')));
    const last = Number(await page.locator('#list-volumes .grid').getAttribute('aria-rowcount'));
    for (const [key, wanted] of [
        ['ArrowDown', 3],
        ['ArrowUp', 2],
        ['End', last],
        ['Home', 2],
    ]) {
        await page.keyboard.press(key);
        expect((await row()) === wanted, `${key} leads to row ${await row()}, not ${wanted}`);
    }
});
await finish();
