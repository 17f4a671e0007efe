// `npm run pictures`: takes the pictures of the console that the documents show (docs/pictures) anew. It runs an installation on
// the embedded engine in a separate data directory, with samples as the demo has them: batches, a failed job, and jobs to explain.
// It needs Chromium. `npm run pictures -- --all-sizes DIR` writes the pages at 1440, 768 and 375 px, light and dark, to a folder in
// place of that, for somebody to look at. Names and rows are the same each time; moments and speeds are those of the run.
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { hostname, userInfo } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { EXIT } from '../cli/exit.ts'
import { openCommandStore, openSession, type Session } from '../cli/open/open.ts'
import { openProducer, type Producing } from '../cli/process/producer.ts'
import { processTerminal, say } from '../cli/terminal.ts'
import { connect } from '../producers/client.ts'
import { discard } from '../src/embedded/server.ts'
import { endWithParent } from '../src/lifetime.ts'
import { every } from '../src/recurring.ts'
import { openBrowser } from '../test/examples/chromium.ts'
import { freePorts } from '../test/ops/free-ports.ts'
import { type Child, startCommand } from '../test/support/process.ts'
import { failCopy } from '../test/workers/act/failed-copies.ts'
import { inAllSizes, NAMES, PICTURES, type Picture } from './pictures/list.ts'
import { withPalette } from './pictures/palette-png.ts'
import { comeIn, endNights, setUp } from './pictures/samples.ts'
import { writeSample } from './sample/cards.ts'

const { values: asked } = parseArgs({ options: { 'all-sizes': { type: 'string' } } })
/** Where each page goes in every size; undefined: the pictures of the documents are taken. */
const ALL_SIZES = asked['all-sizes']
const OUT = ALL_SIZES === undefined ? fileURLToPath(new URL('../docs/pictures/', import.meta.url)) : resolve(ALL_SIZES)
const WIDTH = 1_440
const HEIGHT = 900
/** So that the samples are the same in every month. */
const SAMPLED_AT = Date.UTC(2026, 8, 1)
/** The batch under way outlasts the pictures: those of every size take minutes. */
const ROWS = ALL_SIZES === undefined ? 8_000 : 40_000
/** Points of a batch are noted every ten seconds. */
const [WORK_MS, REST_MS] = [40_000, 25_000]
/** How fast the batch goes on that is under way: the same on every machine that is fast enough. */
const [ROWS_A_SECOND, PACE_MS] = [40, 200]
const START_MS_MAX = 120_000
const CARD = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' }
/** What stands for this machine and the account that runs the commands. */
const [HOST, ACCOUNT] = ['vault-1', 'ops']

const terminal = processTerminal()
const dataDir = resolve('.tokenmill-pictures')
const [consolePort, httpPort] = await freePorts(2)
const env = {
  ...process.env,
  TOKENMILL_DATA_DIR: dataDir,
  TOKENMILL_CONSOLE_PORT: String(consolePort),
  TOKENMILL_HTTP_PORT: String(httpPort),
  TOKENMILL_METRICS_PORT: '0',
  TOKENMILL_LOG_LEVEL: 'error',
  DATABASE_URL: '',
  REDIS_URL: '',
  TOKENMILL_KEK: '',
  TOKENMILL_KEK_FILE: '',
}

async function run(...args: string[]): Promise<string> {
  const child = startCommand(args, { env })
  const { code } = await child.exit
  if (code !== EXIT.ok && code !== EXIT.incomplete)
    throw new Error(`tokenmill ${args.join(' ')} ended with ${code}: ${child.stderr()}`)
  return child.stdout()
}

async function sample(name: string, rows: number): Promise<string> {
  const file = join(dataDir, `${name}.csv`)
  await writeSample(file, { rows, seed: rows, now: SAMPLED_AT })
  return file
}

/** Batches that are finished, that stopped at their own limit, and one that goes on until the pictures are taken. */
async function makeBatches(session: Session): Promise<Child> {
  const migrate = (file: string, batchId: string, ...more: string[]) => [
    'migrate',
    file,
    '--batch-id',
    batchId,
    ...more,
  ]
  await run(...migrate(await sample('autumn-1', 10_000), NAMES.finished))
  await run(...migrate(await sample('winter', 2_000), NAMES.stopped, '--chunk', '100', '--limit', '1200'))
  const slow = ['--chunk', '20', '--in-flight', '1']
  const going = startCommand(migrate(await sample('autumn-2', ROWS), NAMES.running, ...slow), { env })
  await keepPace(session, going)
  await pause(WORK_MS)
  await run('batch', 'pause', NAMES.running, '--reason', 'the file is being checked')
  await pause(REST_MS)
  await run('batch', 'resume', NAMES.running)
  await pause(WORK_MS)
  return going
}

/** Holds the sender back while it is faster than the pace. */
async function keepPace(session: Session, sender: Child): Promise<void> {
  const { store } = await openCommandStore(session)
  const text = `select rows_done as rows, extract(epoch from now() - created_at)::float as seconds from tokenmill.batch where batch_id = $1`
  const look = async () => {
    const [found] = (await store.query<{ rows: number; seconds: number }>({ text, values: [NAMES.running] })).rows
    sender.signal(found && found.rows > found.seconds * ROWS_A_SECOND ? 'SIGSTOP' : 'SIGCONT')
  }
  session.lifetime.onClose('pace', every(PACE_MS, look, session))
}

/** A token with a job that can be explained, and jobs that failed for good. */
async function makeJobs(session: Session, producing: Producing): Promise<void> {
  const client = await connect({ ...producing, replyTo: 'pictures', log: session.log })
  const { credentials, queues } = producing
  const card = { token_scope: credentials.tokenScope, ...(await client.encryptCard(CARD)) }
  await client.call('token-create', card, { jti: NAMES.jti, reference: 'customer 2041' })
  for (const [minutes, code] of [
    [4, 'files_away'],
    [3, 'files_away'],
    [9, 'contention'],
  ] as const)
    await failCopy(queues, {
      credentials,
      code,
      failedAt: Date.now() - minutes * 60_000,
      reference: `report ${minutes}`,
    })
  await client.close()
}

async function take(page: Page, origin: string, picture: Picture): Promise<void> {
  const { name, path, follow = [], search, width = WIDTH, isDark = false, heightMax = 1_400, isDone = false } = picture
  await page.emulateMedia({ colorScheme: isDark ? 'dark' : 'light' })
  await page.setViewportSize({ width, height: HEIGHT })
  await page.goto(`${origin}${path}`)
  if (search !== undefined) {
    await page.getByLabel('What happened to').fill(search)
    await page.locator('main').getByRole('button', { name: 'Explain' }).click()
    await page.locator('.timeline').waitFor()
  }
  // The rail has links, too.
  for (const text of follow) await page.locator('main').getByRole('link', { name: text }).first().click()
  if (isDone) {
    await page.getByLabel(/^Why\?/).fill('the file has rows of last year')
    await page.locator('button.main').click()
    await page.getByText('Done.').waitFor()
    // The row gets its number within seconds; the page doesn't ask for it again.
    for (let asked = 0; asked < 20 && (await page.getByText(/^number /).count()) === 0; asked += 1) {
      await pause(1_000)
      await page.reload()
    }
  }
  await page.evaluate(renamed())
  const high = (await page.evaluate('document.documentElement.scrollHeight')) as number
  const clip = { x: 0, y: 0, width, height: Math.min(high, heightMax) }
  await writeFile(join(OUT, `${name}.png`), withPalette(await page.screenshot({ fullPage: true, clip })))
  say(terminal, relative('.', join(OUT, `${name}.png`)))
}

/** A script that writes other names in place of this machine's and of its account's. */
function renamed(): string {
  const [user, host] = [userInfo().username, hostname()]
  const names = JSON.stringify({ [`${user}@${host}`]: `${ACCOUNT}@${HOST}`, [user]: ACCOUNT, [host]: HOST })
  return `(() => {
  const names = ${names}
  const account = ${JSON.stringify(`${user}@${host}`)}
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  while (texts.nextNode()) {
    const one = texts.currentNode
    const text = one.data.trim()
    one.data = names[text] === undefined ? one.data.replace(account, names[account]) : one.data.replace(text, names[text])
  }
})()`
}

async function main(): Promise<void> {
  discard(dataDir)
  await rm(dataDir, { recursive: true, force: true })
  await Promise.all([mkdir(dataDir, { recursive: true, mode: 0o711 }), mkdir(OUT, { recursive: true })])
  say(terminal, 'Starting an installation on the embedded engine. This takes about two minutes ...')
  const started = startCommand(['start'], { env })
  const session = openSession({ ...terminal, env }, 'pictures')
  const browser = await openBrowser()
  try {
    const [link] = await started.line(/http:\/\/localhost:\d+\/welcome#\S+(?=;)/, {
      ms: START_MS_MAX,
      stream: 'stderr',
    })
    const { origin } = new URL(link)
    const producing = await openProducer(session, undefined, [])
    const { store } = await openCommandStore(session)
    const { entityId } = producing.credentials
    const { displayLink } = await setUp(run, store, { dataDir, entityId })
    await makeJobs(session, producing)
    const going = await makeBatches(session)
    await comeIn(run, browser, origin, entityId)
    await endNights(run, store)
    const page = await browser.newPage()
    await page.goto(link)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.waitForURL('**/now')
    await page.goto(displayLink)
    await page.waitForURL('**/display')
    for (const picture of ALL_SIZES === undefined ? PICTURES : inAllSizes()) await take(page, origin, picture)
    await going.kill9()
  } finally {
    await browser.close()
    await session.lifetime.close()
    started.signal('SIGINT')
    await started.exit
  }
}

endWithParent()
await main()
process.exit(0)
