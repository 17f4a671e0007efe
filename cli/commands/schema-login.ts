// `tokenmill schema login`: makes a database user for the gateway, for the console, for the roles that open the vault and the
// scheduler, or for people and tools that read, and a file with its DATABASE_URL. The owner's password stays where operators use it.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { ConfigError } from '../../src/config.ts'
import { Secret } from '../../src/secret.ts'
import { causeOf } from '../../src/server-error.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as logins from '../../src/store/access/logins.ts'
import { scramVerifier } from '../../src/store/access/scram.ts'
import * as installation from '../../src/store/installation.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import type { JsonOption } from '../command.ts'
import { EXIT, Stop } from '../exit.ts'
import { writePrivate } from '../open/key-files.ts'
import { openCommandStore, type Session, withSession } from '../open/open.ts'
import { actor, print, say, type Terminal } from '../terminal.ts'

interface Options extends JsonOption {
  out: string
  rotate?: boolean
  printSql?: boolean
}

export function login(terminal: Terminal, purpose: logins.LoginPurpose, options: Options): Promise<void> {
  return withSession(terminal, session => ensure(session, purpose, options))
}

async function ensure(session: Session, purpose: logins.LoginPurpose, options: Options): Promise<void> {
  const { terminal, config } = session
  if (config.databaseUrl === undefined)
    throw new ConfigError('DATABASE_URL: must be set; the embedded PostgreSQL has one user for all roles')
  const { store } = await openCommandStore(session)
  const { installationId } = await installation.get(store)
  const login = await logins.find(store, purpose, installationId)
  const path = resolve(options.out)
  const told = { login: login.name, file: path }
  if (!options.rotate && (await isUpToDate(session, login, path))) return print(terminal, options, told, 'up to date')

  const password = new Secret(randomBytes(32).toString('base64url'))
  const more = purpose !== 'reader' && !config.redisUrls ? (['tokenmill_queue'] as const) : []
  const statements = logins.statementsFor(login, purpose, { verifier: scramVerifier(password), more })
  const write = () =>
    writePrivate(path, fileText(purpose, logins.urlAs(config.databaseUrl ?? '', login.name, password.reveal())), {
      replace: options.rotate === true,
    })
  if (options.printSql) {
    await write()
    const lines = ['begin', ...statements, 'commit'].map(line => `${line};`)
    print(terminal, options, { ...told, sql: lines.join('\n') }, lines)
    return say(
      terminal,
      `Let the owner of the database ${login.database}, who may create roles, run these statements; until then the URL in ${path} does not work.`,
    )
  }
  await openLogin(store, login, statements, write)
  print(terminal, options, told, [`${login.exists ? 'changed' : 'made   '}   ${login.name}`, `made      ${path}`])
  say(terminal, `Give DATABASE_URL of ${path} to ${USERS[purpose]} in place of the owner's.`)
}

/**
 * Whether user and file exist and fit. Throws `Stop` if only one of them exists, or if the file has another user's
 * password.
 */
async function isUpToDate(session: Session, login: logins.Login, path: string): Promise<boolean> {
  if (existsSync(path)) {
    if (login.exists && (await userOf(session, path)) === login.name) return true
    throw new Stop(
      `${path} exists already and does not hold the password of ${login.name}; move the file away, or replace it with --rotate`,
    )
  }
  if (!login.exists) return false
  throw new Stop(
    `${login.name} exists already, and only the file made with it holds its password; --rotate sets another password`,
  )
}

/** The user with which the file's URL connects; undefined if the server refuses it. */
async function userOf({ log }: Session, path: string): Promise<string | undefined> {
  const url = parseEnv(readFileSync(path, 'utf8'))['DATABASE_URL']
  if (url === undefined) return undefined
  const store = openStore(url, { log, connectionsMax: 1, application: 'tokenmill login' })
  try {
    return await logins.sessionUser(store)
  } catch (error) {
    if (['28P01', '28000'].includes(causeOf(error)?.code ?? '')) return undefined
    throw error
  } finally {
    await store.close()
  }
}

async function openLogin(
  store: Store,
  login: logins.Login,
  statements: readonly string[],
  write: () => Promise<void>,
): Promise<void> {
  try {
    await store.transaction(async db => {
      for (const text of statements) await db.query({ text })
      if (await logins.isOpenToAll(db))
        throw new Stop(
          'DATABASE_URL: this user does not own the database, so it cannot revoke the rights of others; use --print-sql and let the owner run the statements',
        )
      await audits.insert(db, { actor: actor(), action: 'schema.login', subject: login.name })
      // The file is written before the commit: if that fails, the transaction rolls back, and no user without a known
      // password remains.
      await write()
    })
  } catch (error) {
    if ((error as { code?: unknown }).code !== '42501') throw error
    throw new Stop(
      'DATABASE_URL: this user may not create database users; use --print-sql and let an administrator run the statements',
      EXIT.config,
    )
  }
}

const USERS = {
  gateway: 'the gateway',
  reader: 'the reader',
  worker: 'workers, scheduler and three-ds',
  console: 'the console',
} satisfies Record<logins.LoginPurpose, string>

const fileText = (purpose: logins.LoginPurpose, url: string): string =>
  `# The database user of ${USERS[purpose]}, made by \`tokenmill schema login ${purpose}\`. A secret.\nDATABASE_URL='${url}'\n`
