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

// A browser says itself in the console that a server cannot be reached, if it tried meanwhile.
forgive('net::ERR_', true);
await finish();
