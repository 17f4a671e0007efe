// Reads everything that a browser gets from the console, as somebody who sees everything: each page, stream, CSV and answer to a
// form, with its headers, by the console's own list of routes and for everything that the store and the queues hold.
import { openSession } from '../../../cli/open/open.ts'
import { serveConsole } from '../../../cli/process/console.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { failedList } from '../../../src/queue/failed.ts'
import { type Answer, addPerson, callOf } from '../../producers/console/bundle.ts'
import { callsOf, ENDING, everyRoute, type Names, openAsk, withoutRow } from '../../producers/console/routes/calls.ts'
import { grantAll } from '../../support/grant-all.ts'
import type { Installation } from '../../support/installation.ts'
import type { Place } from '../canary.ts'

/** Where the ids of each sort are; the others are made up. */
const HELD: Partial<Record<keyof Names, string>> = {
  batch: 'select batch_no from tokenmill.batch',
  batchId: 'select batch_id from tokenmill.batch',
  reference: 'select reference from tokenmill.receipt where reference is not null',
  job: 'select receipt_id from tokenmill.receipt',
  token: 'select token_id from tokenmill.token',
  schedule: 'select schedule_id from tokenmill.schedule',
  audit: 'select audit_id from tokenmill.audit',
  person: 'select person_id from tokenmill.person',
  client: 'select client_id from tokenmill.client',
}
/** Of one sort so many are looked at. */
const MOST = 12
/** A session may have so many streams. */
const AT_ONCE = 4
const NOTHING = '00000000-0000-4000-8000-000000000000'

export interface OpenedConsole {
  /** Everything that it answers now. A call that isn't `wanted` is left out. */
  read(wanted?: (path: string) => boolean): Promise<Place[]>
  close(): Promise<void>
}

/** A console for the installation. Its CSV need a worker for single jobs. */
export async function openConsoleOf(installation: Installation): Promise<OpenedConsole> {
  const { store, ring } = installation.vault
  const env = { ...installation.env, TOKENMILL_CONSOLE_PORT: '0', TOKENMILL_LOG_LEVEL: 'silent' }
  const session = openSession({ env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr }, 'console')
  const served = await serveConsole(session)
  const { origin } = served.site
  const { cookie } = await addPerson(store, 'sees everything')
  await grantAll(store, ring)
  const ask = openAsk({ call: callOf(served.port, origin), origin })
  const routes = await everyRoute()
  const missing = withoutRow(routes)
  if (missing.length > 0) throw new Error(missing.join('\n'))

  return {
    async read(wanted = () => true) {
      const all = (await namesIn(installation)).flatMap(names => routes.flatMap(route => callsOf(route, names)))
      const named = new Map(all.map(one => [`${one.method} ${one.path} ${JSON.stringify(one.form ?? {})}`, one]))
      const left = [...named].filter(([, { route, path }]) => !ENDING.includes(route) && wanted(path))
      const places: Place[] = []
      const take = async (): Promise<void> => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) {
          const [name, one] = next
          places.push({ name, text: told(await ask(one, cookie)) })
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, take))
      return places
    },
    close: () => session.lifetime.close(),
  }
}

const told = ({ status, headers, text }: Pick<Answer, 'status' | 'headers' | 'text'>) =>
  `${status} ${JSON.stringify(headers)}\n${text}`

/** As many sets of names as there are of the sort with most. */
async function namesIn({ vault, queues }: Installation): Promise<Names[]> {
  const held = new Map<string, string[]>()
  for (const [name, text] of Object.entries(HELD)) {
    const { rows } = await vault.store.query<Record<string, unknown>>({ text: `${text} order by 1 desc limit ${MOST}` })
    held.set(
      name,
      rows.map(row => String(Object.values(row)[0])),
    )
  }
  const failed = await Promise.all(
    CATALOGUE.kinds.map(async kind => (await failedList(queues, kind)).map(({ id }) => ({ kind, copy: id }))),
  )
  const copies = failed.flat()
  const most = Math.max(...[...held.values()].map(({ length }) => length))
  return Array.from({ length: most }, (_, at) => {
    const any = (name: keyof Names) => {
      const ids = held.get(name) ?? []
      return ids[at % Math.max(1, ids.length)] ?? NOTHING
    }
    const { kind, copy } = copies[at % Math.max(1, copies.length)] ?? { kind: 'report', copy: 'none' }
    return {
      batch: any('batch'),
      batchId: any('batchId'),
      reference: any('reference'),
      kind,
      copy,
      job: any('job'),
      token: any('token'),
      schedule: any('schedule'),
      date: '2026-01-01',
      entity: NOTHING,
      audit: any('audit'),
      person: any('person'),
      invite: NOTHING,
      client: any('client'),
      identity: NOTHING,
      act: 'none',
      added: 'none',
      enrolled: 'none',
      passkey: 'none',
      session: 'none',
      flow: 'none',
    }
  })
}
