// SPDX-License-Identifier: Apache-2.0
// In a cluster of two: makes, snapshots, clones, and moves what the script has put there: `large`, of which a move takes long.
import { expect, faults, start, wantsPictures } from './browser.mjs';

const { page, go, check, giveToken, press, openByKeyboard, picture, forgive, finish } =
    await start();
const volumes = page.getByRole('grid', { name: 'Volumes' });
const detail = page.locator('#detail');
const dialog = page.getByRole('dialog');
const lineage = detail.locator('.lineage');

async function openVolume(name) {
    await go('volumes');
    await page.getByLabel('Search volumes').fill(name);
    // Before that, a row may be another one in the moment of the click.
    await page.waitForFunction((text) => {
        const names = document.querySelectorAll('#list-volumes .row:not([hidden]) .name');
        return names.length > 0 && [...names].every((one) => one.textContent.includes(text));
    }, name);
    await volumes.getByText(name, { exact: true }).first().click();
    await detail.getByRole('heading', { name, exact: true }).waitFor();
}

async function answer(button, fields) {
    for (const [label, value] of Object.entries(fields))
        await dialog.getByLabel(label, { exact: true }).fill(value);
    await dialog.getByRole('button', { name: button, exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
}

async function move(name, node) {
    await openVolume(name);
    await detail.getByRole('button', { name: 'Move' }).click();
    await dialog.getByLabel('To node').selectOption(node);
    await dialog.getByRole('button', { name: 'Move' }).click();
    await dialog.waitFor({ state: 'hidden' });
}

async function done(bar) {
    return Number(await bar.getAttribute('value'));
}

await check('both nodes are shown', async () => {
    await go('nodes');
    for (const node of ['node-1', 'node-2'])
        await page.getByRole('row').filter({ hasText: node }).getByText('ready').waitFor();
});

await check('without a token nothing can be changed', async () => {
    await openVolume('large');
    await detail.getByText('directory').waitFor();
    for (const name of ['New volume', 'Clone', 'Snapshot', 'Move', 'Delete'])
        expect(
            (await page.getByRole('button', { name, exact: true }).count()) === 0,
            `there is a button ${name}`,
        );
});

await check('a volume without a limit is called unlimited, in the list and beside it', async () => {
    await volumes.getByRole('row').filter({ hasText: 'large' }).getByText('unlimited').waitFor();
    await detail.locator('dd').getByText('unlimited', { exact: true }).waitFor();
});

await check('it is said when it is known how much of a volume is used', async () => {
    await detail.getByText('known only where it is published').waitFor();
});

await check("a token that is not the server's is refused", async () => {
    await page.getByRole('button', { name: 'Unlock changes' }).click();
    await dialog.getByLabel('Token', { exact: true }).fill('not-the-token-of-this-server');
    await dialog.getByRole('button', { name: 'Unlock' }).click();
    await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Unlock changes' }).waitFor();
    forgive('status of 401');
});

await check('the token is accepted', giveToken);

await check('Lock takes back what the token gave', async () => {
    const clone = detail.getByRole('button', { name: 'Clone' });
    await clone.waitFor();
    await page.getByRole('button', { name: 'Lock', exact: true }).click();
    await page.getByRole('button', { name: 'Unlock changes' }).waitFor();
    await clone.waitFor({ state: 'detached' });
    await giveToken();
});

await check('a volume is made', async () => {
    await go('volumes');
    await page.getByLabel('Search volumes').fill('');
    await page.getByRole('button', { name: 'New volume' }).click();
    await dialog.getByLabel('Node').selectOption('node-1');
    await answer('Create', { Name: 'website', Size: '2' });
    await detail.getByRole('heading', { name: 'website', exact: true }).waitFor();
    await detail.getByText('of 2 GiB').or(detail.getByText('2 GiB')).first().waitFor();
    await volumes.getByRole('row').filter({ hasText: 'website' }).waitFor();
});

await check('what the server refuses is said in the dialog', async () => {
    await page.getByRole('button', { name: 'New volume' }).click();
    await dialog.getByLabel('Node').selectOption('node-1');
    await dialog.getByLabel('Name').fill('website');
    await dialog.getByLabel('Size').fill('7');
    await dialog.getByRole('button', { name: 'Create' }).click();
    await dialog.getByRole('alert').filter({ hasText: /./ }).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    forgive('status of 409');
});

await check('a snapshot is taken and appears in the lineage', async () => {
    await openVolume('website');
    await detail.getByRole('button', { name: 'Snapshot' }).click();
    await answer('Take the snapshot', { Name: 'website-monday' });
    await lineage.getByRole('link', { name: 'website-monday' }).waitFor();
});

await check('a volume without a limit is larger than all others', async () => {
    await page.getByLabel('Search volumes').fill('');
    await volumes.getByRole('button', { name: 'Size' }).click();
    await page.waitForFunction(() => {
        const grid = document.querySelector('#list-volumes .grid');
        const rows = Number(grid.getAttribute('aria-rowcount'));
        const last = grid.querySelector(`[aria-rowindex="${rows}"]:not([hidden]) .name`);
        return rows > 2 && last?.textContent === 'large';
    });
    await volumes.getByRole('button', { name: 'Name' }).click();
    await openVolume('website');
});

await check('a clone of the volume appears in the lineage', async () => {
    await detail.getByRole('button', { name: 'Clone' }).click();
    await answer('Clone', { Name: 'website-staging' });
    await openVolume('website');
    await lineage.getByRole('link', { name: 'website-staging' }).waitFor();
});

await check('a clone of the snapshot appears below it', async () => {
    await lineage.getByRole('link', { name: 'website-monday' }).click();
    await detail.getByText('snapshot', { exact: true }).first().waitFor();
    await detail.getByRole('button', { name: 'Clone' }).click();
    await answer('Clone', { Name: 'website-restored' });
    await openVolume('website-restored');
    await lineage.getByRole('link', { name: 'website-monday' }).waitFor();
    expect((await lineage.locator('li').count()) === 4, 'the lineage has not four members');
    await page.getByLabel('Search volumes').fill('');
    await volumes.getByText('large', { exact: true }).waitFor();
    await picture('volumes');
    await page.emulateMedia({ colorScheme: 'dark' });
    await detail.getByRole('button', { name: 'Move' }).click();
    await dialog.getByRole('heading', { name: 'Move website-restored' }).waitFor();
    await picture('dark');
    for (const theme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme: theme });
        const found = await faults(page);
        expect(found === '', `axe, the dialog in a cluster, ${theme}: ${found}`);
    }
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.emulateMedia({ colorScheme: 'light' });
});

await check('a move shows its progress', async () => {
    await move('large', 'node-2');
    await page.getByRole('link', { name: 'Operations' }).click();
    const bar = page.getByRole('progressbar', { name: /large/ });
    await bar.waitFor();
    await page.waitForFunction(() => document.querySelector('#view progress')?.value > 0);
    const first = await done(bar);
    await page.waitForFunction(
        (before) => document.querySelector('#view progress')?.value > before,
        first,
    );
    await page.waitForFunction(() =>
        /iB\/s/.test(document.querySelector('#view tbody')?.textContent ?? ''),
    );
    const edges = await page
        .locator('#view table')
        .evaluateAll((tables) =>
            tables.map((one) =>
                [...one.querySelectorAll('th')].map((cell) => cell.getBoundingClientRect().left),
            ),
        );
    expect(edges.length === 2, `there are ${edges.length} tables`);
    expect(String(edges[0]) === String(edges[1]), `columns begin at ${edges.join(' and at ')}`);
    await page
        .getByRole('row')
        .filter({ hasText: 'Copy volume website-restored' })
        .getByText('from website-monday', { exact: true })
        .waitFor();
    for (const theme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme: theme });
        const found = await faults(page);
        expect(found === '', `axe, operations that run, ${theme}: ${found}`);
    }
    if (wantsPictures)
        await page.waitForFunction(() => document.querySelector('#view progress')?.position > 0.2);
    await picture('operations');
});

await check('the move is cancelled, and the volume stays where it is', async () => {
    await page.getByRole('button', { name: /^Cancel: .*large/ }).click();
    await page
        .getByRole('row')
        .filter({ hasText: 'large' })
        .getByText('cancelled', { exact: true })
        .waitFor();
    await openVolume('large');
    await detail.locator('dd').getByText('node-1', { exact: true }).first().waitFor();
});

const news = page.locator('#news');

async function cloneTo(name, clone, node) {
    await openVolume(name);
    await detail.getByRole('button', { name: 'Clone' }).click();
    await dialog.getByLabel('Node').selectOption(node);
    await answer('Clone', { Name: clone });
}

await check('a clone that takes long is made when it is, not before', async () => {
    await cloneTo('medium', 'medium-far', 'node-2');
    await news.getByText('Making medium-far …').waitFor();
    expect((await news.getByText('Made medium-far.').count()) === 0, 'it is called made already');
    await news.getByText('Made medium-far.').waitFor();
    expect((await news.getByText('Making medium-far').count()) === 0, 'it is still being made');
    await openVolume('medium-far');
    await detail.locator('dd').getByText('ready', { exact: true }).first().waitFor();
});

await check('a clone that is cancelled is not called made', async () => {
    await cloneTo('large', 'large-far', 'node-2');
    await news.getByText('Making large-far …').waitFor();
    await page.getByRole('link', { name: 'Operations' }).click();
    await page.getByRole('button', { name: /^Cancel: .*large-far/ }).click();
    await news.getByText('large-far was not made: it was cancelled.').waitFor();
    expect((await news.getByText('Making large-far').count()) === 0, 'it is still being made');
});

// A snapshot that takes long needs a large volume on slow storage.
await check('a snapshot that fails later (stubbed) is told until that is dismissed, though no event has come', async () => {
    const operation = { id: 's:stub', kind: 'copy-snapshot', subject: 's:stub', state: 'failed' };
    await page.route(/\/api\/v1\/snapshots$/, (route) =>
        route.fulfill({
            status: 202,
            json: { id: 's:stub', name: 'late', ready: false, operation: 's:stub' },
        }),
    );
    await page.route(/\/api\/v1\/operations$/, (route) =>
        route.fulfill({ json: { operations: [{ ...operation, error: 'no space left' }] } }),
    );
    await openVolume('medium');
    await detail.getByRole('button', { name: 'Snapshot' }).click();
    await answer('Take the snapshot', { Name: 'late' });
    await news.getByText('Taking the snapshot late …').waitFor();
    const told = news.getByText('The snapshot late was not taken: no space left');
    await told.waitFor();
    for (const theme of ['dark', 'light']) {
        await page.emulateMedia({ colorScheme: theme });
        const found = await faults(page);
        expect(found === '', `axe, with news, ${theme}: ${found}`);
    }
    await news.getByRole('button', { name: 'Dismiss' }).click();
    await told.waitFor({ state: 'detached' });
    await page.unroute(/\/api\/v1\/snapshots$/);
    await page.unroute(/\/api\/v1\/operations$/);
});

await check('a small volume moves', async () => {
    await move('website-staging', 'node-2');
    await openVolume('website-staging');
    await detail.locator('dd').getByText('node-2', { exact: true }).first().waitFor();
});

await check('a volume is deleted', async () => {
    await openVolume('website-restored');
    const isGone = volumes.getByText('Nothing fits the search.');
    // The answer comes late: the page hears of the deletion before, and must not ask for what is gone.
    await page.route('**/volumes/delete', async (route) => {
        const response = await route.fetch();
        await isGone.waitFor();
        await route.fulfill({ response });
    });
    await detail.getByRole('button', { name: 'Delete' }).click();
    await answer('Delete', {});
    await isGone.waitFor();
    await page.unroute('**/volumes/delete');
});

await check('latencies of CSI calls come before those of the page', async () => {
    await go('latencies');
    const calls = (label) => page.getByRole('region', { name: label }).locator('tbody tr');
    const first = calls('Calls for volumes and snapshots');
    await first.filter({ hasText: 'CreateVolume' }).waitFor();
    const services = await first.locator('small').allInnerTexts();
    expect(
        services.every((one) => /^csi\.v1\.(Controller|Node)$/.test(one)),
        `services: ${services}`,
    );
    await calls('Other calls').filter({ hasText: 'Probe' }).waitFor();
});

await check('a move is begun and cancelled by keyboard alone', async () => {
    await go('nodes');
    await press('Volumes');
    await openByKeyboard('large');
    await press('Move');
    await dialog.waitFor();
    await press('Move');
    await dialog.waitFor({ state: 'hidden' });
    await press('Operations');
    await page.getByRole('progressbar', { name: /large/ }).waitFor();
    await press('Cancel');
    await page.getByRole('region', { name: 'Operations that run' }).waitFor({ state: 'detached' });
});

for (const view of ['nodes', 'snapshots', 'latencies']) {
    await go(view);
    await page.getByRole('heading', { level: 1 }).filter({ hasText: new RegExp(view, 'i') }).waitFor();
    await page.waitForFunction(() => !/Loading/.test(document.querySelector('main').innerText));
    await picture(view);
}
await finish();
