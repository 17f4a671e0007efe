// The settings that a worker process gets from its parent: they are read, or refused with one line.

import { describe, expect, it } from 'vitest'
import { WORKER_SCRIPT } from '../../../cli/process/local-workers.ts'
import { ConfigError } from '../../../src/config.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { CELL_ENV, readWorkerSettings, workerEnv } from '../../../workers/process/worker-settings.ts'
import { startScript } from '../../support/process.ts'

const PLACE = '0198c0de-0000-7000-8000-000000000001'
const PROCESS_ID = '0198c0de-0000-4000-8000-000000000002'

describe('the settings of a worker process', () => {
  it('are read as they were written', () => {
    const kinds = ['token-create', 'token-batch']
    const env = workerEnv({ role: 'bulk', name: 'bulk-1', place: PLACE, processId: PROCESS_ID, kinds, concurrency: 3 })
    expect(readWorkerSettings({ ...env }, CATALOGUE)).toEqual({
      role: 'bulk',
      name: 'bulk-1',
      kinds: ['token-batch'],
      concurrency: 3,
      place: PLACE,
      cell: false,
      processId: PROCESS_ID,
    })
  })

  it('have a default for each that is absent or empty', () => {
    const { kinds, ...rest } = readWorkerSettings({ TOKENMILL_CONCURRENCY: '', TOKENMILL_KINDS: '' }, CATALOGUE)
    expect(rest).toEqual({
      role: 'interactive',
      name: 'interactive',
      concurrency: 64,
      cell: false,
      place: undefined,
      processId: undefined,
    })
    expect(kinds).toContain('token-create')
    expect(kinds).not.toContain('token-batch')
  })

  it('of a cell are its worker’s, but for the place and the process’s id', () => {
    const env = workerEnv({
      role: 'interactive',
      name: 'interactive-0',
      place: PLACE,
      processId: PROCESS_ID,
      kinds: undefined,
      concurrency: undefined,
    })
    expect(readWorkerSettings({ ...env, ...CELL_ENV }, CATALOGUE)).toMatchObject({
      cell: true,
      place: undefined,
      processId: undefined,
    })
  })

  it.each([
    ['TOKENMILL_WORKER_ROLE', 'boss', 'must be interactive or bulk'],
    [
      'TOKENMILL_KINDS',
      'token-create,token-destroy',
      /^TOKENMILL_KINDS: must be kinds, comma-separated: token-create, /,
    ],
    ['TOKENMILL_CONCURRENCY', 'many', 'must be a number'],
    ['TOKENMILL_CONCURRENCY', '0', /^TOKENMILL_CONCURRENCY: /],
    ['TOKENMILL_PLACE', 'here', 'must be a UUID'],
    ['TOKENMILL_PROCESS_ID', '7', 'must be a UUID'],
    ['TOKENMILL_CELL', 'yes', 'must be 0 or 1'],
  ])('are refused where %s is %s', (name, value, wrong) => {
    const read = () => readWorkerSettings({ [name]: value }, CATALOGUE)
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(typeof wrong === 'string' ? `${name}: ${wrong}` : wrong)
  })

  it.each([
    ['TOKENMILL_CONCURRENCY', 'many'],
    ['TOKENMILL_PROCESSES', 'many'],
    ['TOKENMILL_INTERACTIVE_PROCESSES', 'many'],
  ])('end the process with one line and 78 where %s is %s', async (name, value) => {
    const child = startScript(WORKER_SCRIPT, [], { env: { [name]: value } })
    expect(await child.exit).toMatchObject({ code: 78 })
    expect(child.stderr()).toBe(`tokenmill: ${name}: must be a number\n`)
  })
})
