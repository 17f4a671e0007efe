// The state of the simulated network, and the file that keeps the state over restarts and kill -9: one JSON line per
// change, written and synced before the request is answered. The file holds PANs only as keyed hashes, and it never
// shrinks.
import { mkdirSync, readFileSync, truncateSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface SimulatedToken {
  reference: string
  taskId: string
  /** Keyed hash of the PAN. */
  card: string
  bin: string
  lastFour: string
  number: string
  /** The expiry of the token and of the card, MMYY. */
  expiry: string
  cardExpiry: string
  par: string | undefined
  state: 'INACTIVE' | 'ACTIVE' | 'SUSPENDED' | 'DEACTIVATED'
  suspendedBy: string[]
  /** When the token entered its state, ms since the epoch. */
  at: number
}

export interface SimulatedTask {
  id: string
  state: 'IN_PROGRESS' | 'COMPLETED' | 'FAILED'
}

interface ExternalToken {
  token: string
  reference: string
  card: string
  lastFour: string
  deleted: boolean
}

/** One line of the file. All its parts take effect together or not at all. */
interface Change {
  task?: SimulatedTask
  token?: SimulatedToken
  external?: ExternalToken
}

export interface Journal {
  tasks: ReadonlyMap<string, SimulatedTask>
  tokens: ReadonlyMap<string, SimulatedToken>
  /** Third-party tokens by the caller's reference. */
  externals: ReadonlyMap<string, ExternalToken>
  tokensOf(card: string): SimulatedToken[]
  /** Records a change: it takes effect at once, and is on disk when the promise resolves. */
  record(change: Change): Promise<void>
  close(): Promise<void>
}

export async function openJournal(path: string): Promise<Journal> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const tasks = new Map<string, SimulatedTask>()
  const tokens = new Map<string, SimulatedToken>()
  const externals = new Map<string, ExternalToken>()
  const byCard = new Map<string, Set<string>>()
  const apply = ({ task, token, external }: Change) => {
    if (task) tasks.set(task.id, task)
    if (external) externals.set(external.reference, external)
    if (!token) return
    tokens.set(token.reference, token)
    const ofCard = byCard.get(token.card) ?? new Set()
    byCard.set(token.card, ofCard.add(token.reference))
  }
  for (const change of load(path)) apply(change)
  const file = await open(path, 'a', 0o600)
  const write = groupedWrites(file)
  return {
    tasks,
    tokens,
    externals,
    tokensOf: card => [...(byCard.get(card) ?? [])].flatMap(reference => tokens.get(reference) ?? []),
    record: change => {
      apply(change)
      return write(`${JSON.stringify(change)}\n`)
    },
    close: async () => {
      await write('')
      await file.close()
    },
  }
}

/** Reads the file. Drops a last line that a crash left half written. */
function load(path: string): Change[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const whole = text.lastIndexOf('\n') + 1
  if (whole < text.length) truncateSync(path, Buffer.byteLength(text.slice(0, whole)))
  return text
    .slice(0, whole)
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Change)
}

/** Returns a function that appends and syncs. Texts that arrive during a sync share the next sync. */
function groupedWrites(file: FileHandle): (text: string) => Promise<void> {
  let waiting = ''
  let running: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return text => {
    waiting += text
    next ??= running.then(async () => {
      const group = waiting
      waiting = ''
      running = next ?? running
      next = undefined
      if (group === '') return
      await file.writeFile(group)
      await file.datasync()
    })
    return next
  }
}
