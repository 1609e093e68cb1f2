<?php
// Requests a call, waits until it has ended, and downloads yesterday's bill. Needs PHP 7.4 or newer with the extensions curl and xml.
//
//     BASE_URL=https://localhost:8883 CA_FILE=ca.pem ACCOUNT_SID=… AUTH_TOKEN=… APP_ID=… php call.php 13800000001

/** One HTTP exchange. With CA_FILE, trusts only this CA. Without it, trusts the CAs of the machine. */
function fetch(string $url, array $headers = [], ?string $body = null): string
{
    $curl = curl_init($url);
    curl_setopt_array($curl, [
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_FAILONERROR => true,
        CURLOPT_TIMEOUT => 30,
        CURLOPT_HTTPHEADER => $headers,
    ]);
    if (getenv('CA_FILE')) {
        curl_setopt($curl, CURLOPT_CAINFO, getenv('CA_FILE'));
    }
    if ($body !== null) {
        curl_setopt($curl, CURLOPT_POSTFIELDS, $body);
    }
    $answer = curl_exec($curl);
    if ($answer === false) {
        throw new RuntimeException(curl_error($curl));
    }
    return $answer;
}

/** One signed request: a POST where there are fields, otherwise a GET. */
function ask(string $operation, array $query = [], ?string $root = null, array $fields = []): SimpleXMLElement
{
    $sid = getenv('ACCOUNT_SID');
    $stamp = date('YmdHis');
    $query['sig'] = strtoupper(md5($sid . getenv('AUTH_TOKEN') . $stamp));
    $body = null;
    if ($root !== null) {
        $request = new SimpleXMLElement("<$root/>");
        foreach (['appId' => getenv('APP_ID')] + $fields as $name => $value) {
            // Assigned, not passed to addChild: that one would not escape an ampersand.
            $request->$name = $value;
        }
        $body = $request->asXML();
    }
    $url = getenv('BASE_URL') . "/2013-12-26/Accounts/$sid/$operation?" . http_build_query($query);
    $headers = ['Accept: application/xml', 'Content-Type: application/xml;charset=utf-8', 'Authorization: ' . base64_encode("$sid:$stamp")];
    $answer = new SimpleXMLElement(fetch($url, $headers, $body));
    if ((string) $answer->statusCode !== '000000') {
        fwrite(STDERR, "$operation: $answer->statusCode $answer->statusMsg\n");
        exit(1);
    }
    return $answer;
}

$placed = ask('Calls/LandingCalls', [], 'LandingCall', ['to' => $argv[1], 'mediaTxt' => '您的订单已发货']);
$callSid = (string) $placed->LandingCall->callSid;
echo "callSid $callSid\n";

// 0 talked, 1 not answered, 2 failed; any other state means that the call has not ended.
do {
    usleep(500_000);
    $result = ask('CallResult', ['callsid' => $callSid])->CallResult;
} while ((int) $result->state > 2);
echo "state $result->state duration $result->duration\n";

$bill = ask('BillRecords', [], 'BillRecords', ['date' => 'day']);
file_put_contents('bill.csv', fetch("$bill->downUrl?token=$bill->token"));
echo "bill bill.csv\n";
