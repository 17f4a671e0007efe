// The file of a report over HTTP: headers, revalidation and ranges (RFC 9110). This interface has no status 416: a
// range that can't be satisfied is ignored, as RFC 9110, 14.2 allows, and the whole file is sent.
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { readReport } from '../../../src/report/files/download.ts'
import { EXTENSIONS, isKey } from '../../../src/report/files/file-name.ts'
import type { Range, ReportFiles } from '../../../src/report/files/files.ts'
import type { StoredReport } from '../../../src/store/report/reports.ts'
import type { GatewayDeps } from '../deps.ts'

export interface FileHeaders {
  range?: string | undefined
  ifRange?: string | undefined
  ifNoneMatch?: string | undefined
}

export interface FileAnswer {
  status: 200 | 206 | 304
  headers: Record<string, string>
  /** The file's digest is checked while it is read; the stream of a wrong file breaks off before its end. */
  file?: Readable
}

/**
 * The answer with the file; undefined if the report has no file. Throws a `Fault` if the file can't be read, is
 * missing, or isn't the one that was made.
 */
export async function answerWithFile(
  report: StoredReport,
  asked: FileHeaders,
  reportFiles: ReportFiles,
  { log }: Pick<GatewayDeps, 'log'>,
): Promise<FileAnswer | undefined> {
  const { reportUid, status, storageKey, bytes, sha256, mimeType } = report
  if (status !== 'SUCCESSFUL' || storageKey === null || bytes === null || sha256 === null) return undefined
  const etag = `"${sha256}"`
  const common = { etag, 'accept-ranges': 'bytes' }
  if (matches(asked.ifNoneMatch, etag)) return { status: 304, headers: common }
  const isSame = asked.ifRange === undefined || asked.ifRange.trim() === etag
  const range = isSame ? rangeOf(asked.range, bytes) : undefined
  try {
    const file = await readReport(reportFiles, { storageKey, bytes, sha256 }, range)
    // An error before the first byte is answered like any other error.
    await once(file, 'readable')
    file.once('error', error => log.error({ report: reportUid, err: error }, BROKEN))
    const headers = {
      ...common,
      'content-type': mimeType === 'application/pdf' ? mimeType : `${mimeType}; charset=utf-8`,
      'content-disposition': `attachment; filename="${nameOf(report)}"`,
      'content-length': String(range ? range.end - range.start + 1 : bytes),
    }
    if (!range) return { status: 200, headers, file }
    return { status: 206, headers: { ...headers, 'content-range': `bytes ${range.start}-${range.end}/${bytes}` }, file }
  } catch (error) {
    log.error({ report: reportUid, err: error }, BROKEN)
    throw error
  }
}
const BROKEN = 'the file of a report could not be answered with'

/** Whether one ETag of a list equals `etag`, by weak comparison (RFC 9110, 13.1.2). */
function matches(header: string | undefined, etag: string): boolean {
  const listed = (header ?? '').split(',').map(one => one.trim().replace(/^W\//, ''))
  return header?.trim() === '*' || listed.includes(etag)
}

/**
 * The range of a `Range` header (RFC 9110, 14.1.2): one range, or the last n bytes. Undefined for anything else, and
 * for a range outside the file.
 */
function rangeOf(header: string | undefined, bytes: number): Range | undefined {
  const [found, first = '', last = ''] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(header ?? '') ?? []
  if (found === undefined || (first === '' && last === '')) return undefined
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  return start <= end ? { start, end } : undefined
}

/** The name of the downloaded file. It holds no character with a meaning for a shell, a path or a header. */
function nameOf({ fileName, reportUid, mimeType }: StoredReport): string {
  return fileName !== null && isKey(fileName) ? fileName : `${reportUid}.${EXTENSIONS[mimeType]}`
}
