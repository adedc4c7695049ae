// SPDX-License-Identifier: Apache-2.0
// The server ends and starts again, as the script does it when this one says so: lines on stdout, signals by files in the first argument.
import fs from 'node:fs';
import { expect, start } from './browser.mjs';

const folder = process.argv[2];
const { page, go, check, forgive, finish } = await start();

async function tell(name) {
    fs.writeFileSync(`${folder}/${name}`, '');
    while (!fs.existsSync(`${folder}/${name}-done`))
        await new Promise((resolve) => setTimeout(resolve, 50));
}

await check('the page is live', async () => {
    await go('nodes');
    await page.getByText('Live', { exact: true }).waitFor();
});

await check('a list that cannot be loaded says why, and is loaded again', async () => {
    let refusals = 1;
    await page.route(/\/api\/v1\/volumes\?/, (route) => {
        refusals -= 1;
        return refusals < 0
            ? route.continue()
            : route.fulfill({ status: 503, body: '503 Service Unavailable: it is busy\n' });
    });
    await go('volumes');
    await page.locator('#list-volumes .note').getByText('it is busy').waitFor();
    await page.locator('#list-volumes .note').getByText('There are no volumes yet.').waitFor();
    await go('nodes');
});

await check('it says when the connection is lost, and from when its data is', async () => {
    await tell('stop');
    await page
        .getByRole('alert')
        .getByText(/Connection lost.*What you see is from \d/)
        .waitFor();
    expect(
        await page.evaluate(() => document.body.classList.contains('stale')),
        'old data looks live',
    );
    expect((await page.getByText('Live', { exact: true }).count()) === 0, 'it still says Live');
});

await check('it is live again when the server is, without the alert', async () => {
    await tell('start');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('alert').getByText('Connection lost').waitFor({ state: 'detached' });
    expect(
        !(await page.evaluate(() => document.body.classList.contains('stale'))),
        'live data looks old',
    );
});

// A browser says itself in the console that a server has refused, or cannot be reached, if it tried meanwhile.
forgive('status of 503', true);
forgive('net::ERR_', true);
await finish();
