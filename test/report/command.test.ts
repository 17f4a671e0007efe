// `tokenmill report`: requests, lists and downloads.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cli as runCli } from '../cli/command-bench.ts'
import { describeOnRedis } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'

const OTHER = '7b2a6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'
const WANTED = ['--type', 'DAILY_TRANSACTION_REPORT', '--parameter', 'reportableDay=2026-01-31']

describeOnRedis('report', engine => {
  let installation: Installation
  let clerk: Awaited<ReturnType<Installation['addClient']>>
  let other: Awaited<ReturnType<Installation['addClient']>>
  beforeAll(async () => {
    installation = await openInstallation(engine)
    clerk = await installation.addClient('clerk', { roles: ['TOKEN_READ'] })
    other = await installation.addClient('other', { entity: OTHER })
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  const report = (words: string[], env: NodeJS.ProcessEnv = {}) =>
    runCli(['report', ...words], { env: { ...installation.env, ...env } })
  const mine = () => ['--client', installation.clientFile]

  it('tells what is wrong with a request at once, by field, and names the missing role: 64', async () => {
    const wrong = ['request', '--type', 'DAILY_TRANSACTION_REPORT', '--parameter', 'reportableDay=yesterday', ...mine()]
    for (const words of [wrong, [...wrong, '--wait']]) {
      const { status, stdout, stderr } = await report(words)
      expect({ status, stdout }).toEqual({ status: 64, stdout: '' })
      expect(stderr).toContain('--parameter reportableDay: ')
    }
    const { status, stderr } = await report(['request', ...WANTED, '--client', clerk.clientFile])
    expect({ status, stderr }).toEqual({
      status: 64,
      stderr: 'tokenmill: the client lacks the role REPORT_REQUEST; name another client with --client.\n',
    })
  })

  // Only on Redis can a command run without a store.
  if (engine.name === 'redis')
    it('passes on what a worker refuses: 3, and names the missing role', async () => {
      const noStore = { DATABASE_URL: undefined }
      const refused = await report(['request', ...WANTED, '--wait', '--client', clerk.clientFile], noStore)
      expect(refused).toMatchObject({
        status: 3,
        stderr: 'tokenmill: A worker refused it: the client lacks the role REPORT_REQUEST\n',
      })
      const foreign = await report(['request', ...WANTED, '--wait', '--entity', OTHER, ...mine()], noStore)
      expect(foreign).toMatchObject({ status: 3 })
      expect(foreign.stderr).toContain('This client does not act for this entity.')
    })

  it('lists and downloads every entity’s reports for an operator without a client’s file', async () => {
    const request = (file: string) => report(['request', ...WANTED, '--wait', '--json', '--client', file])
    const first = (await request(installation.clientFile)).json<{ reportUid: string }>()
    const second = (await request(other.clientFile)).json<{ reportUid: string }>()
    const listed = async (...words: string[]) => {
      const { reports } = (await report(['list', '--json', ...words])).json<{
        reports: { reportUid: string; reportEntityUid: string }[]
      }>()
      return reports.map(({ reportUid }) => reportUid)
    }
    expect(await listed()).toEqual([second.reportUid, first.reportUid])
    expect(await listed('--search', `reportEntityUid==${ENTITY};status==SUCCESSFUL`)).toEqual([first.reportUid])
    expect(await listed('--client', 'other')).toEqual([second.reportUid])
    expect(await listed('--client', other.clientFile)).toEqual([second.reportUid])
    expect(await listed('--client', 'other', '--search', `reportEntityUid==${ENTITY}`)).toEqual([])
    expect(await report(['list', '--client', 'nobody'])).toMatchObject({ status: 1 })
    const out = join(installation.dataDir, `${randomUUID()}.csv`)
    expect(await report(['download', second.reportUid, '--out', out])).toMatchObject({ status: 0 })
  })
})
