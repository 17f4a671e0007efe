// Lets one run at a time write a results file: two would overwrite each other's rows. The lock is a file beside the
// results that names its owner. The next run on the same host, in the same container, removes a lock whose owner is gone.
import { randomUUID } from 'node:crypto'
import { link, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import { cannotWrite } from '../atomic-file.ts'
import { codeOf, FileError } from '../file-error.ts'

const Owner = z.object({
  host: z.string(),
  pid: z.int(),
  began: z.string(),
  /** The namespace in which `pid` counts. Absent where the system has none. */
  pids: z.string().optional(),
})
type Owner = z.infer<typeof Owner>

const CLEARING_MS = 20
/**
 * The longest time that a process may take to remove a dead owner's lock, in ms. After that it counts as dead, too, and
 * another process removes the lock.
 */
const CLEARING_MS_MAX = 10_000

/** Locks all of these files; returns a function that releases them. Throws a FileError if another process writes one. */
export async function lockFiles(paths: readonly string[]): Promise<() => Promise<void>> {
  const releases: (() => Promise<void>)[] = []
  const release = async () => {
    for (const one of releases) await one()
  }
  try {
    for (const path of paths) releases.push(await lockRun(path))
    return release
  } catch (error) {
    await release()
    throw error
  }
}

/** Takes the lock; returns a function that releases it. Throws a FileError if another process holds it. */
export async function lockRun(results: string): Promise<() => Promise<void>> {
  const path = `${results}.lock`
  const pids = await pidNamespace()
  const own = { host: hostname(), pid: process.pid, began: await beginOf(process.pid), ...(pids && { pids }) }
  while (!(await take(path, own, results))) {
    const left = await textOf(path)
    if (left === undefined) continue
    const owner = ownerIn(left)
    if (owner && (await isAlive(owner))) throw await isHeld(results, path, owner)
    await clear(path, left)
  }
  return () => rm(path, { force: true })
}

/** Writes the lock file completely, or not at all. False if one exists. */
async function take(path: string, own: Owner, results: string): Promise<boolean> {
  const draft = `${path}.${randomUUID()}`
  try {
    await writeFile(draft, `${JSON.stringify(own)}\n`, { mode: 0o600, flag: 'wx' })
    await link(draft, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw cannotWrite(results, error)
  } finally {
    await rm(draft, { force: true })
  }
}

/** What the lock file holds; undefined if it is gone. */
async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(error => {
    if (codeOf(error) === 'ENOENT') return undefined
    throw cannotWrite(path, error)
  })
}

/** The owner that the lock file names; undefined if it isn't a lock file. */
function ownerIn(text: string): Owner | undefined {
  try {
    return Owner.parse(JSON.parse(text))
  } catch {
    return undefined
  }
}

/**
 * Removes the lock of a dead owner, which holds the text `left`. One process at a time does so, and only while the lock
 * still holds that text: nobody can put another lock in its place before it is removed.
 */
async function clear(path: string, left: string): Promise<void> {
  const turn = `${path}.clearing`
  try {
    await writeFile(turn, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw cannotWrite(path, error)
    const { mtimeMs } = await stat(turn).catch(() => ({ mtimeMs: Date.now() }))
    if (Date.now() - mtimeMs > CLEARING_MS_MAX) await rm(turn, { force: true })
    return pause(CLEARING_MS)
  }
  try {
    if ((await textOf(path)) === left) await rm(path, { force: true })
  } finally {
    await rm(turn, { force: true })
  }
}

/**
 * Whether the owner lives. A process on another host, or in another container of the same host name, counts as alive,
 * because its state isn't known here.
 */
async function isAlive(owner: Owner): Promise<boolean> {
  const { host, pid, began } = owner
  if (host !== hostname() || (await isElsewhere(owner))) return true
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false
  }
  return (await beginOf(pid)) === began
}

/** Whether the owner's process id counts in another namespace, where it means another process. */
async function isElsewhere({ pids }: Owner): Promise<boolean> {
  return pids !== undefined && pids !== (await pidNamespace())
}

/** Undefined if the system has no such namespaces. */
function pidNamespace(): Promise<string | undefined> {
  return readlink('/proc/self/ns/pid').catch(() => undefined)
}

/**
 * When a process was started, in the system's own count. It shows whether a process id was reused by another process.
 * Empty if the system doesn't say.
 */
async function beginOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
}

async function isHeld(results: string, path: string, owner: Owner): Promise<FileError> {
  const { host, pid } = owner
  const container = (await isElsewhere(owner)) ? ' of another container' : ''
  const where = `process ${pid}${host === hostname() ? container : ` on ${host}`}`
  const next = `Wait until it has ended, or stop it, and run the same command again. If it is gone for certain, remove ${path}.`
  return new FileError('output', `${results} is being written by ${where}.`, next)
}
