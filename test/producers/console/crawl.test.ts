// A person of one entity walks over every route: nothing of another entity is ever shown, and what isn't the person's answers
// exactly as what doesn't exist.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from './bundle.ts'

const CANARIES = {
  id: 'canary-batch-id',
  file: 'canary-file.csv',
  digest: 'c'.repeat(64),
  rows: 91_827_364,
  reason: 'canary_reason',
  note: 'canary note',
}
const ACTS = ['pause', 'resume', 'cancel', 'note'] as const
/** A number that no batch has. */
const NONE = 999_999_999

let bundle: ConsoleBundle
let limited: Person
let all: Person
let ours: number
let theirs: number
let nobodys: number
beforeAll(async () => {
  bundle = await openConsoleBundle()
  limited = await bundle.addPerson('limited', { entities: [OURS] })
  all = await bundle.addPerson('all')
  const { id, file, digest, rows, reason } = CANARIES
  const more = `source_name = '${file}', source_sha256 = '${digest}', reasons = '{"REJECTED": {"${reason}": 3}}'`
  const canary = { extentRows: rows, rowsDone: rows - 1, counts: { REJECTED: 3 }, more }
  ours = await bundle.addBatch({ batchId: 'our-batch' })
  theirs = await bundle.addBatch({ ...canary, batchId: id, entityId: THEIRS })
  const noted = { client_id: bundle.installation.credentials.signingKey.clientId, reason: CANARIES.note }
  await bundle.rows(
    `insert into tokenmill.audit (actor, action, subject, detail, host) values ('machine:canary', 'batch.note', $1, $2, 'h')`,
    [id, JSON.stringify(noted)],
  )
  nobodys = await bundle.addBatch({ ...canary, batchId: `${id}-2`, entityId: null })
})
afterAll(() => bundle?.close())

/** What a person sees of an answer: not its request's id. */
const seen = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}

/** Every route that names a batch. */
async function answers(cookie: string, no: number): Promise<string[]> {
  const form = { seen: 'RUNNING', reason: 'why', nonce: 'n', proof: '' }
  const calls = [
    bundle.call('GET', `/batches/${no}`, { cookie }),
    bundle.call('GET', `/batches/${no}/refused`, { cookie }),
    bundle.call('GET', `/batches/${no}/refused?after=0-1`, { cookie }),
    bundle.call('POST', `/batches/${no}/refused/csv`, { cookie }),
    bundle.call('GET', `/explain/batches/${no}`, { cookie }),
    ...ACTS.flatMap(act => [
      bundle.call('GET', `/batches/${no}/${act}`, { cookie }),
      bundle.call('POST', `/batches/${no}/${act}`, { cookie, form }),
      bundle.call('POST', `/batches/${no}/${act}/begin`, { cookie, json: form }),
    ]),
  ]
  return (await Promise.all(calls)).map(seen)
}

describe('a person of one entity', () => {
  it('meets nothing of another entity on any route', async () => {
    const { cookie } = limited
    const paths = [
      '/',
      '/now',
      '/now/again',
      '/batches',
      '/sessions',
      '/passkeys',
      '/passkeys/add',
      '/sign-in',
      '/welcome',
      '/acts/nonce',
      '/explain',
      '/explain/jobs/nothing',
      '/explain/tokens/nothing',
      '/nowhere',
      '/batches?order=newest',
      '/batches?state=open',
      `/batches?after=4-${theirs}`,
      `/batches?order=newest&after=0-${NONE}`,
      ...['/failed', '/failed?kind=report', '/failed/all/retry?kind=report', `/failed/report/f_${'A'.repeat(43)}`],
    ]
    const own = [`/batches/${ours}`, `/batches/${ours}/refused`, ...ACTS.map(act => `/batches/${ours}/${act}`)]
    const pages = await Promise.all([...paths, ...own].map(path => bundle.call('GET', path, { cookie })))
    const foreign = [...(await answers(cookie, theirs)), ...(await answers(cookie, nobodys))]
    const shown = [...pages.map(({ text }) => text), ...foreign].join('\n')
    for (const canary of [CANARIES.id, CANARIES.file, 'cccccccc', '91,827,364', '91827364', CANARIES.reason, 'canary'])
      expect(shown).not.toContain(canary)
    expect(shown).toContain('our-batch')
  })

  it('gets for a batch of others, or of nobody, the answer for one that doesn’t exist', async () => {
    const { cookie } = limited
    const missing = await answers(cookie, NONE)
    for (const no of [theirs, nobodys]) expect((await answers(cookie, no)).join() === missing.join()).toBe(true)
    expect(missing.every(answer => answer.includes('"status":404'))).toBe(true)
    const [begun] = await bundle.rows<{ n: number }>('select count(*) as n from tokenmill.pending_act')
    expect(begun?.n).toBe(0)
  })

  it('differs in this from a person of all entities', async () => {
    const { cookie } = all
    const list = await bundle.call('GET', '/batches', { cookie })
    expect(list.text).toContain(CANARIES.id)
    for (const no of [theirs, nobodys]) {
      const page = await bundle.call('GET', `/batches/${no}`, { cookie })
      expect(page.status).toBe(200)
      expect(page.text).toContain(CANARIES.reason)
    }
  })
})

describe('a role', () => {
  it.each([
    ['VIEWER', []],
    ['OPERATOR', ['pause', 'resume', 'note']],
    ['ADMIN', ['pause', 'resume', 'cancel', 'note']],
  ])('%s begins %j', async (role, may) => {
    const { cookie } = await bundle.addPerson(`one ${role}`, { roles: [role] })
    for (const act of ACTS) {
      const json = { seen: 'RUNNING', reason: 'why' }
      const { status } = await bundle.call('POST', `/batches/${ours}/${act}/begin`, { cookie, json })
      expect({ act, status }).toEqual({ act, status: may.includes(act) ? 200 : 403 })
      const page = await bundle.call('GET', `/batches/${ours}/${act}`, { cookie })
      expect(page.status).toBe(may.includes(act) ? 200 : 403)
    }
  })

  it('of none begins nothing that holds a card number', async () => {
    const json = { seen: 'RUNNING', reason: 'the card 4111 1111 1111 1111 came twice' }
    const answer = await bundle.call('POST', `/batches/${ours}/pause/begin`, { cookie: all.cookie, json })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('card number')
    expect(answer.text).not.toContain('4111')
  })
})
