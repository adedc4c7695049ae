// SPDX-License-Identifier: Apache-2.0
// Every view, panel and dialog with axe, light and dark, locked and unlocked; then a volume by keyboard alone.
import { expect, faults, start, token } from './browser.mjs';

const views = [
    'nodes',
    'volumes',
    'snapshots',
    'operations',
    'connections',
    'exports',
    'latencies',
];
const { page, go, check, giveToken, press, openByKeyboard, forgive, finish } = await start();

const dialog = page.getByRole('dialog');

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

// `open` opens the dialog; then it is refused what it sends, so that it shows an error, too.
async function checkDialog(what, open) {
    await open();
    await dialog.waitFor();
    await hasNoFaults(`the dialog ${what}`);
    const error = { message: 'it is refused' };
    await page.route('**/api/v1/**', (route) =>
        route.request().method() === 'POST'
            ? route.fulfill({ status: 409, json: { error } })
            : route.continue(),
    );
    const name = dialog.getByLabel('Name', { exact: true });
    if ((await name.count()) > 0) await name.fill('x');
    await dialog.locator('button[type="submit"]').click();
    await dialog.getByRole('alert').getByText('it is refused').waitFor();
    await hasNoFaults(`the dialog ${what}, with an error`);
    await page.unroute('**/api/v1/**');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    forgive('status of 409');
}

async function checkViews(how) {
    for (const view of views) {
        await go(view);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.waitForFunction(
            () => !document.querySelector('main').innerText.includes('Loading'),
        );
        await hasNoFaults(`${view}, ${how}`);
    }
    for (const view of ['volumes', 'snapshots']) {
        await openFirst(view);
        await hasNoFaults(`the panel of ${view}, ${how}`);
    }
}

const click = (name) => page.getByRole('button', { name, exact: true }).click();

await go('nodes');
await page.getByText('Live', { exact: true }).waitFor();
for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    await checkViews(`${theme}, locked`);
    await click('Unlock changes');
    await hasNoFaults(`the dialog for the token, ${theme}`);
    await page.keyboard.press('Escape');
}
await giveToken();
for (const theme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: theme });
    await checkViews(`${theme}, unlocked`);
    await go('volumes');
    await checkDialog(`New volume, ${theme}`, () => click('New volume'));
    for (const view of ['volumes', 'snapshots'])
        for (const name of view === 'volumes' ? ['Clone', 'Snapshot', 'Delete'] : ['Clone', 'Delete'])
            await checkDialog(`${name} of ${view}, ${theme}`, async () => {
                await openFirst(view);
                await click(name);
            });
}

await check('a server without a token (stubbed) is not asked for one, but told how to get one', async () => {
    await page.route('**/api/v1/overview', async (route) => {
        const response = await route.fetch();
        const overview = { ...(await response.json()), tokenConfigured: false, writable: false };
        return route.fulfill({ response, json: overview });
    });
    await go('nodes');
    await page.getByRole('button', { name: 'Unlock changes' }).click();
    await dialog.getByText('--http-token-file FILE', { exact: true }).waitFor();
    expect((await dialog.locator('input').count()) === 0, 'there is a field');
    expect(!(await dialog.innerText()).includes('`'), 'it shows backticks');
    await hasNoFaults('the dialog of a server without a token');
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.unroute('**/api/v1/overview');
    await page.getByRole('button', { name: 'Lock', exact: true }).waitFor();
});

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

await check('a volume is made by keyboard alone', async () => {
    await go('nodes');
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await press('Volumes');
    await page.getByRole('button', { name: 'New volume' }).waitFor();
    await press('New volume');
    await dialog.waitFor();
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
    await openByKeyboard('by-keyboard');
    expect(
        await page.evaluate(() => document.activeElement.closest('#detail') !== null),
        'the focus is not in the panel',
    );
});

const isInside = () =>
    page.evaluate(() => document.activeElement.closest('dialog') !== null);
const focused = () => page.evaluate(() => document.activeElement.textContent);

await check('a dialog takes the focus, keeps it, and gives it back to its button', async () => {
    for (const name of ['Clone', 'Snapshot', 'Delete']) {
        await press(name);
        await dialog.waitFor();
        expect(await isInside(), `${name}: the focus is not in the dialog`);
        const visited = new Set();
        for (let step = 0; step < 20; step += 1) {
            await page.keyboard.press(step % 3 === 2 ? 'Shift+Tab' : 'Tab');
            // Between the last and the first there are the browser's own buttons.
            const isBetween = await page.evaluate(() => document.activeElement === document.body);
            expect(isBetween || (await isInside()), `${name}: Tab leads out of the dialog`);
            visited.add(await focused());
        }
        expect(visited.has('Close'), `${name}: Tab does not reach Close`);
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'detached' });
        expect((await focused()) === name, `${name}: the focus is on ${await focused()}`);
    }
});

await check('what a dialog asks has labels, and its text describes it', async () => {
    await press('Clone');
    await dialog.waitFor();
    const nameless = await dialog
        .locator('input, select, textarea')
        .evaluateAll((all) => all.filter((one) => !one.labels.length && !one.ariaLabel).length);
    expect(nameless === 0, `${nameless} fields have no label`);
    expect(
        await dialog.evaluate((one) => {
            const of = (name) => document.getElementById(one.getAttribute(name))?.textContent;
            return Boolean(of('aria-labelledby')) && Boolean(of('aria-describedby'));
        }),
        'it has no title or no description',
    );
    await page.keyboard.press('Escape');
});

await check('a dialog is sent once, and keeps what was typed and the focus if it is refused', async () => {
    let requests = 0;
    let refuse;
    const isWanted = new Promise((resolve) => (refuse = resolve));
    await page.route(/\/api\/v1\/volumes$/, async (route) => {
        requests += 1;
        await isWanted;
        await route.fulfill({ status: 409, json: { error: { message: 'it is there already' } } });
    });
    await press('Clone');
    await dialog.waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('typed');
    await press('Clone');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Space');
    await dialog.locator('button[aria-disabled="true"]').waitFor();
    refuse();
    await dialog.getByRole('alert').getByText('it is there already').waitFor();
    expect(requests === 1, `it was sent ${requests} times`);
    expect((await dialog.getByLabel('Name').inputValue()) === 'typed', 'what was typed is gone');
    expect((await isInside()) && (await focused()) === 'Clone', `the focus: ${await focused()}`);
    await page.keyboard.press('Escape');
    await page.unroute(/\/api\/v1\/volumes$/);
    forgive('status of 409');
});

await check('a refusal is told, too, if the dialog was closed before it came', async () => {
    let refuse;
    const isWanted = new Promise((resolve) => (refuse = resolve));
    await page.route(/\/api\/v1\/snapshots$/, async (route) => {
        await isWanted;
        await route.fulfill({ status: 409, json: { error: { message: 'there is no room' } } });
    });
    await press('Snapshot');
    await dialog.waitFor();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    refuse();
    await page.locator('#news').getByText('Snapshot of by-keyboard: there is no room').waitFor();
    await press('✕');
    await page.locator('#news').getByText('there is no room').waitFor({ state: 'detached' });
    await page.unroute(/\/api\/v1\/snapshots$/);
    forgive('status of 409');
});

await check('a volume is cloned by keyboard alone', async () => {
    await press('Clone');
    await dialog.waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('copied-by-keys');
    await page.keyboard.press('Enter');
    await page.locator('#detail').getByRole('heading', { name: 'copied-by-keys' }).waitFor();
});

await check('a snapshot is taken by keyboard alone', async () => {
    await press('Snapshot');
    await dialog.waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('taken-by-keys');
    await page.keyboard.press('Enter');
    await page.locator('#detail .lineage').getByRole('link', { name: 'taken-by-keys' }).waitFor();
});

await check('a volume is deleted by keyboard alone', async () => {
    await page.keyboard.press('Escape');
    await openByKeyboard('copied-by-keys');
    await press('Delete');
    await dialog.waitFor();
    await press('Delete');
    await page.locator('#detail').waitFor({ state: 'hidden' });
    await page.locator('#list-volumes').getByText('Nothing fits the search.').waitFor();
});

await check('changes are locked and unlocked by keyboard alone', async () => {
    await press('Lock');
    await page.getByRole('button', { name: 'New volume' }).waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await dialog.waitFor();
    await page.keyboard.type(token);
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'New volume' }).waitFor();
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
