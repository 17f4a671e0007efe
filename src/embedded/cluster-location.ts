// The place of a data directory's cluster, the account that owns it, and its password. Usually the cluster is in `<data
// dir>/postgresql`. PostgreSQL refuses to run as root, so for root an unprivileged account owns the cluster. If that
// account can't reach the data directory (for example below a home folder of mode 0700), the cluster lies elsewhere,
// and `<data dir>/postgresql.place` holds its path. No user account is ever created.
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../config.ts'
import { Secret } from '../secret.ts'
import { type Account, run } from './command.ts'

export interface ClusterLocation {
  /** The folder that holds `data` (the cluster), `server.log`, and a copy of the binaries if one is needed. */
  dir: string
  cluster: string
  serverLog: string
  /** The account that runs the server; undefined: the current user. */
  account: Account | undefined
  password: Secret
}

/** Used for root if the data directory can't hold the cluster. The folder survives a reboot. */
const STATE_DIR = '/var/lib/tokenmill'

/**
 * Finds or makes the location for `dataDir`. Several processes may call it at once. Throws `ConfigError` if none is
 * possible.
 */
export async function findClusterLocation(dataDir: string): Promise<ClusterLocation> {
  const root = process.getuid?.() === 0
  try {
    mkdirSync(dataDir, { recursive: true, mode: root ? 0o711 : 0o700 })
    const home = realpathSync(dataDir)
    const { dir, account } = root ? await findForRoot(home) : { dir: join(home, 'postgresql'), account: undefined }
    own(dir, account)
    const cluster = join(dir, 'data')
    const password = readPassword(home, cluster)
    return { dir, cluster, serverLog: join(dir, 'server.log'), account, password }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') throw error
    throw new ConfigError(
      `TOKENMILL_DATA_DIR: this user cannot read and write ${dataDir} (${code}); change its owner, or choose another directory`,
    )
  }
}

async function findForRoot(home: string): Promise<{ dir: string; account: Account }> {
  const inside = join(home, 'postgresql')
  const record = join(home, 'postgresql.place')
  const known = existsSync(record) ? readFileSync(record, 'utf8').trim() : existsSync(inside) ? inside : undefined
  if (known) return { dir: known, account: ownerOf(known) ?? unprivileged() }
  const account = unprivileged()
  if (await canEnter(home, account)) return { dir: inside, account }
  const made = await makeElsewhere(home, account)
  const dir = writeOnce(record, `${made}\n`, 0o644).trim()
  if (dir !== made) rmSync(made, { recursive: true })
  return { dir, account }
}

async function makeElsewhere(home: string, account: Account): Promise<string> {
  let dir: string | undefined
  try {
    mkdirSync(STATE_DIR, { recursive: true, mode: 0o755 })
    const { uid } = lstatSync(STATE_DIR)
    if (uid === 0 && (await canEnter(STATE_DIR, account))) dir = mkdtempSync(join(STATE_DIR, 'postgresql-'))
  } catch {
    // On a read-only system only the temporary directory is writable.
  }
  dir ??= mkdtempSync(join(tmpdir(), 'tokenmill-postgresql-'))
  writeFileSync(join(dir, 'data-dir'), `${home}\n`)
  chownSync(dir, account.uid, account.gid)
  if (!(await canEnter(dir, account)))
    throw new ConfigError(
      `TOKENMILL_DATA_DIR: the user with uid ${account.uid} can reach neither ${home} nor ${dir}; choose a directory that this user can reach`,
    )
  return dir
}

/** Removes the cluster of `dataDir` and its password. The server must be stopped. */
export function discard(dataDir: string): void {
  const record = join(dataDir, 'postgresql.place')
  if (existsSync(record)) rmSync(readFileSync(record, 'utf8').trim(), { recursive: true, force: true })
  for (const name of ['postgresql', 'postgresql.place', 'postgresql.password'])
    rmSync(join(dataDir, name), { recursive: true, force: true })
}

function own(dir: string, account: Account | undefined): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  if (account && statSync(dir).uid !== account.uid) chownSync(dir, account.uid, account.gid)
}

function ownerOf(dir: string): Account | undefined {
  const { uid, gid } = statSync(dir, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 }
  return uid === 0 ? undefined : { uid, gid }
}

/** The account `postgres` if the machine has it, else `nobody`. */
function unprivileged(): Account {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find(line => line.startsWith(`${name}:`))?.split(':') ?? []
    if (Number(uid) > 0) return { uid: Number(uid), gid: Number(gid) }
  }
  return { uid: 65_534, gid: 65_534 }
}

/**
 * Whether `account` can enter `dir`. It asks the system instead of reading mode bits, because ACLs and user namespaces
 * count, too.
 */
async function canEnter(dir: string, account: Account): Promise<boolean> {
  return (await run('/bin/sh', ['-c', 'cd -- "$0"', dir], account)).code === 0
}

function readPassword(home: string, cluster: string): Secret {
  const file = join(home, 'postgresql.password')
  if (!existsSync(file) && existsSync(cluster))
    throw new ConfigError(
      `TOKENMILL_DATA_DIR: ${file} is missing, and the database beside it cannot be opened without that file; restore it from a backup`,
    )
  return new Secret(writeOnce(file, `${randomBytes(24).toString('hex')}\n`, 0o600).trim())
}

/**
 * Writes `file` completely, or not at all if it exists. Returns the file's content: of several processes at once the
 * first decides it.
 */
function writeOnce(file: string, text: string, mode: number): string {
  if (!existsSync(file)) {
    const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`
    writeFileSync(draft, text, { mode, flush: true })
    try {
      linkSync(draft, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(file, 'utf8')
}
