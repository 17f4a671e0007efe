// From an error of a server to a cause: the server's own word, a remedy, and whether the server surely did nothing.
import { describe, expect, it } from 'vitest'
import { Fault } from '../src/errors.ts'
import { causeOf } from '../src/server-error.ts'

const reply = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' })
const sql = (code: string, message: string, severity = 'ERROR') => Object.assign(new Error(message), { code, severity })
const SCRIPT = 'script: c686f316aaf1eb01d5a4de1b0b63cd233010e63d, on @user_script:1.'

describe('an error of Redis', () => {
  it.each([
    [`OOM command not allowed when used memory > 'maxmemory'. ${SCRIPT}`, 'OOM', /^Redis is full .*: OOM command not/],
    [`READONLY You can't write against a read only replica. ${SCRIPT}`, 'READONLY', /read only replica$/],
    ['MISCONF Redis is configured to save RDB snapshots, but it is unable. Commands', 'MISCONF', /unable$/],
    ['LOADING Redis is loading the dataset in memory', 'LOADING', /loading the dataset in memory$/],
    [`NOREPLICAS Not enough good replicas to write. ${SCRIPT}`, 'NOREPLICAS', /good replicas to write$/],
    ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", 'MASTERDOWN', /MASTERDOWN/],
    ['CLUSTERDOWN The cluster is down', 'CLUSTERDOWN', /The cluster is down/],
    ['NOAUTH Authentication required.', 'NOAUTH', /NOAUTH/],
    ['WRONGPASS invalid username-password pair or user is disabled.', 'WRONGPASS', /WRONGPASS/],
    ["NOPERM this user has no permissions to run the 'evalsha' command", 'NOPERM', /'evalsha' command$/],
    ['ERR max number of clients reached', 'MAXCLIENTS', /max number of clients/],
    ['BUSY Redis is busy running a script. You can only call SCRIPT KILL', 'BUSY', /busy running a script$/],
  ])('%s', (message, code, says) => {
    const cause = causeOf(new Fault('queue_away', reply(message)))
    expect(cause).toMatchObject({ server: 'Redis', code, says: expect.stringMatching(says), isRefused: true })
    expect(cause?.next).not.toBe('')
  })

  it('for a right that a script lacks may come after its first write', () => {
    const message = `ERR The user executing the script can't run this command or subcommand ${SCRIPT}`
    expect(causeOf(reply(message))).toMatchObject({ code: 'NOPERM', isRefused: false })
    expect(causeOf(reply(`NOPERM User a has no permissions to run the 'xadd' command ${SCRIPT}`))).toMatchObject({
      isRefused: false,
    })
  })

  it('that ends a transaction has the cause of the command before', () => {
    const exec = Object.assign(reply('EXECABORT Transaction discarded because of previous errors.'), {
      previousErrors: [reply("OOM command not allowed when used memory > 'maxmemory'.")],
    })
    expect(causeOf(exec)).toMatchObject({ code: 'OOM' })
  })
})

describe('an error of PostgreSQL', () => {
  it.each([
    ['25006', 'cannot execute INSERT in a read-only transaction', 'ERROR', true],
    ['53300', 'sorry, too many clients already', 'FATAL', true],
    ['53300', 'too many connections for role "tokenmill_worker"', 'FATAL', true],
    ['53100', 'could not extend file "base/16384/16397": No space left on device', 'ERROR', true],
    ['53200', 'out of memory', 'ERROR', true],
    ['57P01', 'terminating connection due to administrator command', 'FATAL', false],
    ['57P02', 'terminating connection because of crash of another server process', 'WARNING', false],
    ['57P03', 'the database system is starting up', 'FATAL', true],
    ['42501', 'permission denied for table token', 'ERROR', true],
    ['28P01', 'password authentication failed for user "tm"', 'FATAL', true],
    ['3D000', 'database "tm" does not exist', 'FATAL', true],
    ['58030', 'could not read block 3 in file "base/5/1"', 'ERROR', true],
    ['55000', 'database "tm" is not currently accepting connections', 'FATAL', true],
    ['08P01', 'no more connections allowed (max_client_conn)', 'FATAL', false],
  ])('%s %s', (code, message, severity, isRefused) => {
    const cause = causeOf(new Fault('store_away', sql(code, message, severity)))
    expect(cause).toMatchObject({ server: 'PostgreSQL', code, isRefused, says: expect.stringContaining(message) })
    expect(cause?.says).toContain(code)
  })

  it('is shortened to one line, without what could be a card number', () => {
    const says = causeOf(sql('53100', `no room for 4111111111111111\nDETAIL ${'x'.repeat(500)}`))?.says ?? ''
    expect(says).toContain('no room for …')
    expect(says).not.toContain('DETAIL')
    expect(causeOf(sql('53100', 'x'.repeat(500)))?.says.length).toBeLessThan(200)
  })

  it('that is no answer of this kind has no cause: a broken statement, a race, a refused value, silence', () => {
    for (const error of [
      sql('42601', 'syntax error'),
      sql('40001', 'could not serialize'),
      sql('23505', 'duplicate key'),
      sql('08P01', 'bind message supplies 1 parameters', 'ERROR'),
      Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' }),
      reply('WRONGTYPE Operation against a key holding the wrong kind of value'),
      new Fault('store_away'),
      'text',
    ])
      expect(causeOf(error)).toBeUndefined()
  })
})
