// What a process that forks a worker tells it, through its environment: one schema reads it, and what writes it stands
// beside it. Settings of the operator are src/config.ts.
import { z } from 'zod'
import { readSettings } from '../../src/config.ts'
import { CATALOGUE, KINDS, type Kind } from '../../src/job/catalogue.ts'

export const WORKER_ROLES = ['interactive', 'bulk'] as const
export type WorkerRole = (typeof WORKER_ROLES)[number]

export interface WorkerSettings {
  role: WorkerRole
  /** The kinds of the role, or those of them that were named. */
  kinds: readonly Kind[]
  /** Jobs at once, per kind and process. */
  concurrency: number
  /** In metrics: `bulk-0`. */
  name: string
  /** What one process after the other has; undefined in a cell, which lives beside its worker. */
  place: string | undefined
  /** Answers its worker, and takes nothing from a queue. */
  cell: boolean
}

const CONCURRENCY = { interactive: 16, bulk: 2 } as const

const isKind = (word: string) => (KINDS as readonly string[]).includes(word)

const Environment = z.object({
  TOKENMILL_WORKER_ROLE: z.enum(WORKER_ROLES, `must be ${WORKER_ROLES.join(' or ')}`).default('interactive'),
  TOKENMILL_KINDS: z
    .string()
    .transform(text => text.split(','))
    .refine(words => words.every(isKind), `must be kinds, comma-separated: ${KINDS.join(', ')}`)
    .optional(),
  TOKENMILL_CONCURRENCY: z.coerce.number().int().min(1).optional(),
  TOKENMILL_PLACE: z.uuid('must be a UUID').optional(),
  TOKENMILL_PROCESS: z.string().min(1).optional(),
  TOKENMILL_CELL: z.enum(['0', '1'], 'must be 0 or 1').default('0'),
})

/** Throws `ConfigError` naming the first bad setting. */
export function readWorkerSettings(env: NodeJS.ProcessEnv): WorkerSettings {
  const e = readSettings(Environment, env)
  const role = e.TOKENMILL_WORKER_ROLE
  const cell = e.TOKENMILL_CELL === '1'
  return {
    role,
    kinds: kindsOf(role, e.TOKENMILL_KINDS),
    concurrency: e.TOKENMILL_CONCURRENCY ?? CONCURRENCY[role],
    name: e.TOKENMILL_PROCESS ?? role,
    place: cell ? undefined : e.TOKENMILL_PLACE,
    cell,
  }
}

/** `named`: only these. */
export function kindsOf(role: WorkerRole, named?: readonly string[]): Kind[] {
  return KINDS.filter(
    kind => CATALOGUE[kind].bulk === (role === 'bulk') && (named === undefined || named.includes(kind)),
  )
}

export type WorkerEnv = Partial<Record<keyof typeof Environment.shape, string>>

/** For a worker process. What isn't given is left as the environment around it says. */
export function workerEnv(worker: {
  role: WorkerRole
  name: string
  place: string
  kinds: readonly string[] | undefined
  concurrency: number | undefined
}): WorkerEnv {
  return {
    TOKENMILL_WORKER_ROLE: worker.role,
    TOKENMILL_PROCESS: worker.name,
    TOKENMILL_PLACE: worker.place,
    ...(worker.kinds ? { TOKENMILL_KINDS: worker.kinds.join(',') } : {}),
    ...(worker.concurrency ? { TOKENMILL_CONCURRENCY: String(worker.concurrency) } : {}),
  }
}

/** For a cell: it has its worker's environment, and this. */
export const CELL_ENV: WorkerEnv = { TOKENMILL_CELL: '1' }
