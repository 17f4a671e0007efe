// Two processes read the store at any moment, while keys are made and put into use. What one process seals the other
// opens, after at most one reload.
import fc from 'fast-check'
import { beforeAll, describe, it } from 'vitest'
import { Secret } from '../../../src/secret.ts'
import { type KeyProvider, keksOf } from '../../../src/vault/kek/provider.ts'
import {
  type LiveRing,
  makeDataKeys,
  openLiveRing,
  PURPOSES,
  type WrappedKey,
} from '../../../src/vault/ring/key-ring.ts'
import { withReload } from '../../../src/vault/ring/reload.ts'
import { openKek, PAN } from '../bundle.ts'

const ID = '01890a5d-ac96-774b-bcce-b302099a8057'
const SCOPE = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const RUNS = Number(process.env['RING_RUNS'] ?? 1000)
const VERSIONS = [2, 3, 4, 5]

/**
 * What happens next, and to which of the two rings. A `read` ends at the next `answer`, or at the end of all steps; `turn`
 * is `begin` and `finish` in one.
 */
const STEP = fc.record({
  step: fc.constantFrom('seal', 'open', 'read', 'refresh', 'answer', 'begin', 'finish', 'turn'),
  at: fc.constantFrom(0, 1),
})

interface Process {
  ring: LiveRing
  /** While it is set, an answer of the store waits for it. */
  late: PromiseWithResolvers<void> | undefined
}

describe('two rings', () => {
  let kek: KeyProvider
  let first: WrappedKey[]
  let later: WrappedKey[]
  beforeAll(async () => {
    kek = await openKek()
    first = await makeDataKeys(kek, PURPOSES)
    later = (await Promise.all(VERSIONS.map(version => makeDataKeys(kek, ['seal'], version)))).flat()
  })

  it('open what each other sealed, whatever the order of reading, making, putting into use and sealing', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 5, maxLength: 40 }), async steps => {
        const rows = first.map(row => ({ ...row }))
        const processes = await Promise.all([start(rows), start(rows)])
        const sealed: ReturnType<LiveRing['seal']>[] = []
        const ended: Promise<unknown>[] = []
        const open = ({ ring }: Process, one: ReturnType<LiveRing['seal']>) =>
          withReload(ring, async () => ring.open(one.sealed, one.keyVersion, ID, SCOPE))
        for (const { step, at } of steps) {
          const own = processes[at]
          const last = sealed.at(-1)
          if (!own) continue
          if (step === 'seal') sealed.push(own.ring.seal(new Secret(PAN), ID, SCOPE))
          if (step === 'open' && last) ended.push(open(own, last))
          if (step === 'read') {
            own.late ??= Promise.withResolvers()
            ended.push(own.ring.refresh())
          }
          if (step === 'refresh') ended.push(own.ring.refresh())
          if (step === 'answer') answer(own)
          if (step === 'begin' || step === 'turn') begin(rows)
          if (step === 'finish' || step === 'turn') finish(rows)
          // Lets the rings process the answers.
          await new Promise(setImmediate)
        }
        for (const own of processes) answer(own)
        await Promise.all(ended)
        for (const own of processes) await Promise.all(sealed.map(one => open(own, one)))
      }),
      { numRuns: RUNS },
    )
  })

  async function start(rows: readonly WrappedKey[]): Promise<Process> {
    const own: Pick<Process, 'late'> = { late: undefined }
    const source = {
      // The content is that of the moment of the call, but the answer may arrive later.
      load: async () => {
        const seen = rows.map(row => ({ ...row }))
        await own.late?.promise
        return seen
      },
      reserve: async () => Number.MAX_SAFE_INTEGER,
    }
    const ring = await openLiveRing(keksOf(kek), source)
    await ring.reserve('seal')
    return Object.assign(own, { ring })
  }

  function answer(own: Process): void {
    own.late?.resolve()
    own.late = undefined
  }

  function begin(rows: WrappedKey[]): void {
    const next = later.find(({ version }) => rows.every(row => row.purpose !== 'seal' || row.version < version))
    if (next && rows.every(row => row.state !== 'PENDING')) rows.push({ ...next, state: 'PENDING' })
  }

  /** Finishes the rotation without waiting for any process. */
  function finish(rows: WrappedKey[]): void {
    const pending = rows.find(row => row.state === 'PENDING')
    const active = rows.find(row => row.purpose === 'seal' && row.state === 'ACTIVE')
    if (!pending || !active) return
    active.state = 'DECRYPT_ONLY'
    pending.state = 'ACTIVE'
  }
})
