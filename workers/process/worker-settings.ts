// The settings that a worker's parent passes to it in environment variables: the schema that reads them, and the
// function that writes them. src/config.ts has the operator's settings.
import { z } from 'zod'
import { readSettings } from '../../src/config.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'

export const WORKER_ROLES = ['interactive', 'bulk'] as const
export type WorkerRole = (typeof WORKER_ROLES)[number]

export interface WorkerSettings {
  role: WorkerRole
  /** The kinds of the role, or the named ones among them. */
  kinds: readonly string[]
  /** How many jobs of a kind the process works at once. */
  concurrency: number
  /** The process's name in metrics: `bulk-0`. */
  name: string
  /**
   * A UUID that the supervisor gives to a process and to those that replace it; undefined in a cell, which runs beside
   * its worker.
   */
  place: string | undefined
  /** A UUID of this process alone, which its supervisor knows; undefined in a cell. */
  processId: string | undefined
  /** The process is a cell: it replies to its worker and takes nothing from a queue. */
  cell: boolean
}

export const CONCURRENCY = { interactive: 64, bulk: 2 } as const

const environmentOf = ({ kinds }: Catalogue) =>
  z.object({
    TOKENMILL_WORKER_ROLE: z.enum(WORKER_ROLES, `must be ${WORKER_ROLES.join(' or ')}`).default('interactive'),
    TOKENMILL_KINDS: z
      .string()
      .transform(text => text.split(','))
      .refine(words => words.every(word => kinds.includes(word)), `must be kinds, comma-separated: ${kinds.join(', ')}`)
      .optional(),
    TOKENMILL_CONCURRENCY: z.coerce.number().int().min(1).optional(),
    TOKENMILL_PLACE: z.uuid('must be a UUID').optional(),
    TOKENMILL_PROCESS_ID: z.uuid('must be a UUID').optional(),
    TOKENMILL_PROCESS: z.string().min(1).optional(),
    TOKENMILL_CELL: z.enum(['0', '1'], 'must be 0 or 1').default('0'),
  })

/** Reads the settings. Throws `ConfigError` that names the first bad one. */
export function readWorkerSettings(env: NodeJS.ProcessEnv, catalogue: Catalogue): WorkerSettings {
  const e = readSettings(environmentOf(catalogue), env)
  const role = e.TOKENMILL_WORKER_ROLE
  const cell = e.TOKENMILL_CELL === '1'
  return {
    role,
    kinds: kindsOf(catalogue, role, e.TOKENMILL_KINDS),
    concurrency: e.TOKENMILL_CONCURRENCY ?? CONCURRENCY[role],
    name: e.TOKENMILL_PROCESS ?? role,
    place: cell ? undefined : e.TOKENMILL_PLACE,
    processId: cell ? undefined : e.TOKENMILL_PROCESS_ID,
    cell,
  }
}

/** The kinds of a role; `named`: only these. */
export function kindsOf(catalogue: Catalogue, role: WorkerRole, named?: readonly string[]): string[] {
  return catalogue.kinds.filter(
    kind => catalogue.entry(kind).bulk === (role === 'bulk') && (named === undefined || named.includes(kind)),
  )
}

export type WorkerEnv = Partial<Record<keyof ReturnType<typeof environmentOf>['shape'], string>>

/** The environment for a worker process. A setting that isn't given stays as in this process's environment. */
export function workerEnv(worker: {
  role: WorkerRole
  name: string
  place: string
  processId: string
  kinds: readonly string[] | undefined
  concurrency: number | undefined
}): WorkerEnv {
  return {
    TOKENMILL_WORKER_ROLE: worker.role,
    TOKENMILL_PROCESS: worker.name,
    TOKENMILL_PLACE: worker.place,
    TOKENMILL_PROCESS_ID: worker.processId,
    ...(worker.kinds ? { TOKENMILL_KINDS: worker.kinds.join(',') } : {}),
    ...(worker.concurrency ? { TOKENMILL_CONCURRENCY: String(worker.concurrency) } : {}),
  }
}

/** The environment for a cell: its worker's, and this. */
export const CELL_ENV: WorkerEnv = { TOKENMILL_CELL: '1' }
