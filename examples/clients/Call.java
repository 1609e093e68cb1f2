import java.io.InputStream;
import java.io.StringReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

/**
 * Requests a call, waits until it has ended, and downloads yesterday's bill. Needs Java 17 or newer:
 *
 * <pre>BASE_URL=https://localhost:8883 CA_FILE=ca.pem ACCOUNT_SID=... AUTH_TOKEN=... APP_ID=... java Call.java 13800000001</pre>
 */
public class Call {
    static final String BASE_URL = System.getenv("BASE_URL");
    static final String ACCOUNT_SID = System.getenv("ACCOUNT_SID");
    static final String AUTH_TOKEN = System.getenv("AUTH_TOKEN");
    static final String APP_ID = System.getenv("APP_ID");
    /** Escaped, because a Java before 18 reads its sources in the machine's own encoding. */
    static final String MESSAGE = "\u60a8\u7684\u8ba2\u5355\u5df2\u53d1\u8d27";
    static HttpClient http;

    public static void main(String[] arguments) throws Exception {
        http = HttpClient.newBuilder().sslContext(trusted()).build();

        Document placed = ask("Calls/LandingCalls?", "<LandingCall><appId>%s</appId><to>%s</to><mediaTxt>%s</mediaTxt></LandingCall>"
                .formatted(APP_ID, escape(arguments[0]), escape(MESSAGE)));
        String callSid = text(placed, "callSid");
        System.out.println("callSid " + callSid);

        // 0 talked, 1 not answered, 2 failed; any other state means that the call has not ended.
        Document result;
        do {
            Thread.sleep(500);
            result = ask("CallResult?callsid=" + callSid + "&", null);
        } while (Integer.parseInt(text(result, "state")) > 2);
        System.out.println("state " + text(result, "state") + " duration " + text(result, "duration"));

        Document bill = ask("BillRecords?", "<BillRecords><appId>%s</appId><date>day</date></BillRecords>".formatted(APP_ID));
        URI address = URI.create(text(bill, "downUrl") + "?token=" + text(bill, "token"));
        var file = http.send(HttpRequest.newBuilder(address).build(), BodyHandlers.ofByteArray());
        if (file.statusCode() != 200) {
            throw new IllegalStateException("HTTP " + file.statusCode());
        }
        Files.write(Path.of("bill.csv"), file.body());
        System.out.println("bill bill.csv");
    }

    /** One signed request: a POST where there is a body, otherwise a GET. */
    static Document ask(String operation, String body) throws Exception {
        String stamp = LocalDateTime.now().format(DateTimeFormatter.ofPattern("yyyyMMddHHmmss"));
        byte[] digest = MessageDigest.getInstance("MD5").digest((ACCOUNT_SID + AUTH_TOKEN + stamp).getBytes(StandardCharsets.UTF_8));
        String sig = HexFormat.of().withUpperCase().formatHex(digest);
        String authorization = Base64.getEncoder().encodeToString((ACCOUNT_SID + ":" + stamp).getBytes(StandardCharsets.UTF_8));
        var request = HttpRequest.newBuilder(URI.create(BASE_URL + "/2013-12-26/Accounts/" + ACCOUNT_SID + "/" + operation + "sig=" + sig))
                .header("Accept", "application/xml")
                .header("Content-Type", "application/xml;charset=utf-8")
                .header("Authorization", authorization);
        if (body != null) {
            request.POST(HttpRequest.BodyPublishers.ofString(body));
        }
        String answer = http.send(request.build(), BodyHandlers.ofString()).body();
        Document document = DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(new InputSource(new StringReader(answer)));
        if (!text(document, "statusCode").equals("000000")) {
            System.err.println(operation + ": " + text(document, "statusCode") + " " + text(document, "statusMsg"));
            System.exit(1);
        }
        return document;
    }

    static String text(Document document, String element) {
        return document.getElementsByTagName(element).item(0).getTextContent();
    }

    static String escape(String text) {
        return text.replace("&", "&amp;").replace("<", "&lt;");
    }

    /** The server's own CA and no other; without CA_FILE those that Java trusts. */
    static SSLContext trusted() throws Exception {
        String caFile = System.getenv("CA_FILE");
        if (caFile == null) {
            return SSLContext.getDefault();
        }
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream pem = Files.newInputStream(Path.of(caFile))) {
            store.setCertificateEntry("clarion", CertificateFactory.getInstance("X.509").generateCertificate(pem));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }
}
