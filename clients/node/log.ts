// What a program gives the package to log with. pino, winston and console have these three methods.
import type { Logger } from '../../src/logger.ts'

/** `fields`: what a line is about, never card data; a method gets them first, then the text. */
export interface ClientLog {
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}

export function loggerOf(log: ClientLog, more: object = {}): Logger {
  const write =
    (level: keyof ClientLog) =>
    (first: object | string, text = ''): void =>
      typeof first === 'string' ? log[level](more, first) : log[level]({ ...more, ...first }, text)
  return {
    debug() {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: fields => loggerOf(log, { ...more, ...fields }),
  }
}
