// What somebody types into a search stands nowhere afterwards: in no line of the log, no metric, no row of any table, no address, no
// title and no header, whether something is found or not.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Child, startScript } from '../../../support/process.ts'
import { type Answer, type ConsoleBundle, callOf, openConsoleBundle, type Person } from '../bundle.ts'

/** What is found, and what isn't. */
const BATCH = 'typed-batch-7731'
const REFERENCE = 'typed reference 5512'
const JTI = 'typed-jti-9931'
const NOBODYS = ['typed-nothing-4409', 'typed <b>nothing</b> "4410"', `typed-long-${'x'.repeat(400)}`]
/** A number that passes Luhn, and one that doesn't. */
const NUMBERS = ['4000007300001234', '4000 0073 0000 1234', '4000007300001235', '730000123400']

let bundle: ConsoleBundle
let child: Child
let call: ConsoleBundle['call']
let ops: string
let ada: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
  await bundle.addBatch({ batchId: BATCH })
  // A job that is refused, and so decided.
  await bundle.installation.openWorkers({ roles: ['interactive'] })
  const client = await bundle.installation.connect()
  const asked = { id: `t${'0'.repeat(26)}`, action: 'SUSPEND' } as const
  await client.call('token-lifecycle', asked, { jti: JTI, reference: REFERENCE }).catch(() => undefined)
  await client.close()
  await bundle.rows(
    `insert into tokenmill.audit (actor, action, subject) values ('cli:root', 'client.add', 'typed-subject-6620')`,
  )
  const env = { TOKENMILL_CONSOLE_PORT: '0', TOKENMILL_CONSOLE_ORIGIN: '', TOKENMILL_LOG_LEVEL: 'trace' }
  child = startScript('cli/main.ts', ['console'], {
    env: { ...(bundle.installation.env as Record<string, string>), ...env },
  })
  ;[, ops = ''] = await child.line(/"opsPort":(\d+),"msg":"showing metrics"/, { stream: 'stderr' })
  const [, port = ''] = await child.line(/"port":(\d+),"msg":"serving"/, { stream: 'stderr' })
  call = callOf(Number(port), `http://localhost:${port}`)
})
afterAll(async () => {
  child?.signal('SIGTERM')
  await child?.exit
  await bundle?.close()
})

/** How often the text stands in the rows of each table. */
async function held(text: string): Promise<Record<string, number>> {
  const tables = await bundle.rows<{ name: string }>(
    `select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information_schema)' order by 1`,
  )
  const counts = tables.map(
    ({ name }) => `select '${name}' as name, count(*)::int as n from ${name} as t where strpos(t::text, $1) > 0`,
  )
  const found = await bundle.rows<{ name: string; n: number }>(counts.join(' union all '), [text])
  return Object.fromEntries(found.filter(({ n }) => n > 0).map(({ name, n }) => [name, n]))
}

const titleOf = ({ text }: Answer) => /<title>(.*?)<\/title>/s.exec(text)?.[1] ?? ''

it('is what was typed into a search', async () => {
  const typed = [BATCH, REFERENCE, JTI, 'typed-subject-6620', ...NOBODYS, ...NUMBERS]
  const before = await Promise.all(typed.map(held))
  const found = new Set<string>()
  for (const what of typed)
    for (const path of ['/search', '/audit/find']) {
      const answer = await call('POST', path, { cookie: ada.cookie, form: { what } })
      expect([path, what, [303, 404].includes(answer.status)]).toEqual([path, what, true])
      if (answer.status === 303) found.add(what)
      // Nothing that isn't found is written anew on the page that says so.
      for (const form of [what, encodeURIComponent(what), what.replaceAll(' ', '+'), what.replaceAll(' ', '')]) {
        const { 'x-request-id': _, ...headers } = answer.headers
        expect(JSON.stringify(headers)).not.toContain(form)
        expect(titleOf(answer)).not.toContain(form)
        expect(answer.text).not.toContain(form)
      }
    }
  expect([...found].sort()).toEqual([BATCH, JTI, REFERENCE, 'typed-subject-6620'].sort())
  expect(await Promise.all(typed.map(held))).toEqual(before)
  const metrics = await (await fetch(`http://127.0.0.1:${ops}/metrics`)).text()
  expect(metrics).toMatch(/route="\/search"/)
  child.signal('SIGTERM')
  await child.exit
  const log = `${child.stdout()}\n${child.stderr()}`
  expect(log.match(/"route":"\/search"/g)).toHaveLength(typed.length)
  for (const [name, text] of Object.entries({ metrics, log }))
    expect([name, typed.filter(what => text.includes(what) || text.includes(encodeURIComponent(what)))]).toEqual([
      name,
      [],
    ])
})
